//! What `help` knows: every command, how it is written, what it does, and an example.

use super::words::Words;
use crate::{limits::HELP_BYTES_MAX, message::Failure};
use core::fmt;

/// What `help` knows of one command. Prints as its usage and what it does; `{:#}` adds the example.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    /// The words it begins with.
    pub words: &'static [&'static str],
    /// How it is written.
    pub usage: &'static str,
    /// What it does.
    pub about: &'static str,
    /// As somebody would type it.
    pub example: &'static str,
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    {}", self.usage, self.about)?;
        if f.alternate() {
            write!(f, "\n    example: {}", self.example)?;
        }
        Ok(())
    }
}

/// Every command, in the order in which `help` lists them: those that begin with the same words stand together.
pub const TOPICS: &[Topic] = &[
    Topic {
        words: &["get", "status"],
        usage: "get status [where format = json|table|mcp]",
        about: "uptime, clock, resets, stack, tables and link counters of the board",
        example: "get status where format = json",
    },
    Topic {
        words: &["get", "version"],
        usage: "get version [where format = json|table|mcp]",
        about: "firmware, kind of board and wire versions",
        example: "get version",
    },
    Topic {
        words: &["get", "databases"],
        usage: "get databases [where format = json|table|mcp]",
        about: "the names of the databases",
        example: "get databases where format = mcp",
    },
    Topic {
        words: &["get", "processes"],
        usage: "get processes [where format = json|table|mcp]",
        about: "what runs on the board: samplers, links, queries",
        example: "get processes",
    },
    Topic {
        words: &["get", "tables"],
        usage: "get tables where dbms = D [and format = F]",
        about: "the tables of a database",
        example: "get tables where dbms = demo",
    },
    Topic {
        words: &["get", "columns"],
        usage: "get columns where dbms = D and table = T [and format = F]",
        about: "the columns of a table with their types and units",
        example: "get columns where dbms = demo and table = environment",
    },
    Topic {
        words: &["get", "rows", "count"],
        usage: "get rows count [where dbms = D [and table = T]] [and format = F]",
        about: "how many rows each table holds",
        example: "get rows count where dbms = demo",
    },
    Topic {
        words: &["get", "jobs"],
        usage: "get jobs [where format = json|table|mcp]",
        about: "long work of the bridge; bridge only",
        example: "get jobs",
    },
    Topic {
        words: &["blockchain", "get", "table"],
        usage: "blockchain get table [where dbms = D [and name = T]] [bring.json|bring.table] [and format = F] [and extract = dbms|name]",
        about: "the tables and their databases; extract gives one of the two, unique and sorted",
        example: "blockchain get table where dbms = demo bring.json and extract = name",
    },
    Topic {
        words: &["sql"],
        usage: "sql D [format = F] [and stat = true|false] \"SELECT …\"",
        about: "runs a SELECT on a database",
        example: "sql demo format = table \"SELECT timestamp, temp FROM environment LIMIT 10\"",
    },
    Topic {
        words: &["explain", "sql"],
        usage: "explain sql D \"SELECT …\"",
        about: "how a SELECT would be run",
        example: "explain sql demo \"SELECT avg(temp) FROM environment\"",
    },
    Topic {
        words: &["insert"],
        usage: "insert D T {\"column\": value, …}",
        about: "adds a row; the board dates it; a write",
        example: "insert demo notes {\"level\": 3, \"text\": \"door open\"}",
    },
    Topic {
        words: &["create", "table"],
        usage: "create table D.T (column type ['unit'], …) [rows = N]",
        about: "adds a table; types: bool int float float32 float64 timestamp text; a write",
        example: "create table demo.notes (level int, text text) rows = 500",
    },
    Topic {
        words: &["set", "sample"],
        usage: "set sample D T = 500ms",
        about: "how often a sampler inserts: us, ms, s, min, h; a write",
        example: "set sample demo environment = 2s",
    },
    Topic {
        words: &["set", "time"],
        usage: "set time = 2026-11-18T05:00:00Z",
        about: "sets the board's clock; the bridge does this by itself",
        example: "set time = 2026-11-18T05:00:00Z",
    },
    Topic {
        words: &["run", "client"],
        usage: "run client ([board, …]) COMMAND",
        about: "runs a command on boards, () on every one that has the table; bridge only",
        example: "run client () sql demo \"SELECT count(*) FROM environment\"",
    },
    Topic {
        words: &["help"],
        usage: "help [COMMAND]",
        about: "this list, or one command of it with an example",
        example: "help sql",
    },
];

/// Words of a list of candidates: never more than there are commands.
type Candidates = heapless::Vec<&'static str, { TOPICS.len() }>;

/// The words with which commands begin.
pub(super) fn first_words() -> Candidates {
    next_words(TOPICS, 0)
}

/// The topics that begin with the words of the rest of the line; all of them for none.
pub(super) fn topics(words: &mut Words<'_>) -> Result<&'static [Topic], Failure> {
    let mut topics = TOPICS;
    let mut depth = 0;
    while !words.is_at_end() && topics.iter().any(|topic| topic.words.len() > depth) {
        let word = words.keyword(&next_words(topics, depth))?;
        let has_word = |topic: &Topic| topic.words.get(depth) == Some(&word);
        let start = topics.iter().position(has_word).unwrap_or(0);
        let len = topics[start..].iter().take_while(|topic| has_word(topic)).count();
        topics = &topics[start..start + len];
        depth += 1;
    }
    Ok(topics)
}

/// The different words that stand at `depth`.
fn next_words(topics: &[Topic], depth: usize) -> Candidates {
    let mut found = Candidates::new();
    for word in topics.iter().filter_map(|topic| topic.words.get(depth)) {
        if !found.contains(word) {
            let _ = found.push(word); // there is room for every topic's
        }
    }
    found
}

const _: () = {
    let mut index = 0;
    while index < TOPICS.len() {
        let Topic { usage, about, example, .. } = &TOPICS[index];
        assert!(usage.len() + about.len() + example.len() + "\n    \n    example: ".len() <= HELP_BYTES_MAX);
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    #[test]
    fn every_example_is_a_command_of_its_topic() {
        for topic in TOPICS {
            parse(topic.example).unwrap_or_else(|failure| panic!("{}: {failure:?}", topic.example));
            let mut words = topic.example.split_whitespace();
            assert!(topic.words.iter().all(|word| words.next() == Some(word)), "{}", topic.example);
        }
    }

    #[test]
    fn topics_that_begin_alike_stand_together() {
        for (index, topic) in TOPICS.iter().enumerate() {
            for depth in 1..=topic.words.len() {
                let alike = |other: &&Topic| other.words.get(..depth) == Some(&topic.words[..depth]);
                let first = TOPICS.iter().position(|other| alike(&other)).unwrap();
                assert!(TOPICS[first..=index].iter().all(|other| alike(&other)), "{topic:?}");
            }
        }
    }
}
