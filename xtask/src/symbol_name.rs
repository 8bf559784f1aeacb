//! Makes a linker's symbol readable: the names in it, joined. No full demangling: generic arguments are dropped or
//! run together, which is enough to see what a symbol belongs to.

/// The readable form of a symbol; a symbol of unknown form is returned as it is.
pub(crate) fn readable(symbol: &str) -> String {
    let names = match (symbol.strip_prefix("_ZN"), symbol.strip_prefix("_R")) {
        (Some(rest), _) => legacy(rest),
        (_, Some(rest)) => v0(rest),
        _ => None,
    };
    names.filter(|names| !names.is_empty()).map_or_else(|| symbol.to_owned(), |names| names.join("::"))
}

/// `4core3fmt5write17h0123456789abcdefE`: names with their lengths before them, a hash last.
fn legacy(mut rest: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while !rest.starts_with('E') {
        let (name, after) = counted(rest)?;
        names.push(unescaped(name));
        rest = after;
    }
    names.pop_if(|name| name.len() == 17 && name.starts_with('h'));
    Some(names)
}

/// `NvNtCs7ldSeZOOJos_4core3fmt5write`: tags of a letter each around names with their lengths before them. `s` and `B`
/// are followed by a number in base 62 up to `_`; digits directly before `_` are a constant.
fn v0(mut rest: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while let Some(tag) = rest.chars().next() {
        let hex_end = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        let is_constant = tag.is_ascii_digit() && hex_end.starts_with('_');
        if tag == 's' || tag == 'B' || is_constant {
            rest = rest.split_once('_')?.1;
        } else if tag.is_ascii_digit() {
            let (name, after) = counted(rest)?;
            names.push(name.to_owned());
            rest = after;
        } else if tag == '.' {
            break; // A suffix of LLVM's, not of the name.
        } else {
            rest = rest.get(tag.len_utf8()..)?;
        }
    }
    names.retain(|name| !name.is_empty());
    Some(names)
}

/// Splits `4corerest` into `core` and `rest`.
fn counted(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    text[digits..].split_at_checked(length)
}

fn unescaped(name: &str) -> String {
    const ESCAPES: [(&str, &str); 9] = [
        ("..", "::"),
        ("$LT$", "<"),
        ("$GT$", ">"),
        ("$RF$", "&"),
        ("$C$", ","),
        ("$u20$", " "),
        ("$u7b$", "{"),
        ("$u7d$", "}"),
        ("_<", "<"),
    ];
    ESCAPES.iter().fold(name.to_owned(), |name, (escape, text)| name.replace(escape, text))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn both_forms_of_rust_symbols_become_paths() {
        assert_eq!(readable("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(
            readable("_ZN37_$LT$a..S$u20$as$u20$core..fmt..W$GT$1f17h0123456789abcdefE"),
            "<a::S as core::fmt::W>::f"
        );
        assert_eq!(
            readable("_RNvMs2_NtNtCs7ldSeZOOJos_4core3num6bignumNtB5_8Big32x403sub"),
            "core::num::bignum::Big32x40::sub"
        );
        assert_eq!(
            readable("_RNvXse_NtCs7ldSeZOOJos_4core5arrayAmj28_INtNtNtB7_3ops5index8IndexMutE9index_mutB7_"),
            "core::array::ops::index::IndexMut::index_mut"
        );
    }

    #[test]
    fn other_symbols_stay_as_they_are() {
        for symbol in [
            "main",
            "__aeabi_memcpy",
            "_ZN",
            "_ZN99xE",
            "_R",
            "_R9",
            "_Rs",
            "_ZNé",
            "_R3ü",
            "",
            "_ZN99999999999999999999aE",
        ] {
            assert_eq!(readable(symbol), symbol);
        }
    }
}
