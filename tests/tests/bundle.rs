//! The bundle for Claude Desktop (`cargo xtask dist mcpb`), unpacked and started as its manifest says.

use picolake_tests::{
    clients::{self, Node},
    program,
    serving::Piped,
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
};

const MCPB: &str = "@anthropic-ai/mcpb/dist/cli/cli.js";

/// The bundle, unpacked into a folder as a client does it.
struct Unpacked {
    folder: tempfile::TempDir,
    manifest: Value,
}

impl Unpacked {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut zip = zip::ZipArchive::new(File::open(packed(folder.path())).unwrap()).unwrap();
        for at in 0..zip.len() {
            let mut entry = zip.by_index(at).unwrap();
            let path = folder.path().join(entry.enclosed_name().expect("a name inside the folder"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            io::copy(&mut entry, &mut File::create(&path).unwrap()).unwrap();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                let mode = entry.unix_mode().expect("a mode of its own");
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        let manifest = fs::read_to_string(folder.path().join("manifest.json")).unwrap();
        Self { manifest: serde_json::from_str(&manifest).unwrap(), folder }
    }

    /// Starts the server with exactly what the manifest says, in some other folder. `config` is the setting of that
    /// name, or what stands for it where the person left it out.
    fn start(&self, config: Option<&Path>) -> Piped {
        let default = self.manifest["user_config"]["config"]["default"].as_str().unwrap();
        let config = config.map_or(default, |path| path.to_str().unwrap());
        let filled = |text: &Value| {
            let text = text.as_str().unwrap().replace("${__dirname}", self.folder.path().to_str().unwrap());
            let text = text.replace("${user_config.config}", config);
            assert!(!text.contains("${"), "{text}");
            text
        };
        let start = &self.manifest["server"]["mcp_config"];
        let mut command = Command::new(filled(&start["command"]));
        command.args(start["args"].as_array().unwrap().iter().map(filled));
        command.envs(start["env"].as_object().unwrap().iter().map(|(name, value)| (name, filled(value))));
        let elsewhere = self.folder.path().join("server");
        command.current_dir(elsewhere).env("PICOLAKE_RUNTIME_DIR", self.folder.path());
        Piped::start_command(command)
    }
}

/// Packs the program of these tests, which is built already, and returns the bundle.
fn packed(folder: &Path) -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    let target = program().ancestors().nth(2).unwrap().to_owned();
    cargo.args(["run", "--quiet", "--package", "xtask", "--target-dir"]).arg(target);
    cargo.args(["--", "dist", "mcpb", "--program"]).arg(program()).arg("--to").arg(folder.join("dist"));
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let bundle = PathBuf::from(clients::printed(cargo).unwrap().trim_end());
    let name = bundle.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with(concat!("picolake-", env!("CARGO_PKG_VERSION"), "-")) && name.ends_with(".mcpb"),
        "{name}"
    );
    bundle
}

/// The names of the boards, as the tool tells them.
fn boards(server: &mut Piped) -> Vec<String> {
    server.call(1, "list_boards", json!({}));
    let answer = server.receive().unwrap();
    let boards: Value =
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    boards.as_array().unwrap().iter().map(|board| board["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_bundle_shows_simulated_boards_at_once_and_real_ones_when_they_are_named() {
    let unpacked = Unpacked::new();
    let entry = unpacked.folder.path().join(unpacked.manifest["server"]["entry_point"].as_str().unwrap());
    assert!(entry.is_file(), "{}", entry.display());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&entry).unwrap().permissions().mode() & 0o777, 0o755);
    }
    assert_eq!(unpacked.manifest["tools_generated"], true);

    let mut server = unpacked.start(None);
    server.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list"}));
    let listed = server.receive().unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "query"), "{listed}");
    assert_eq!(boards(&mut server), ["greenhouse", "pump", "mill"]);
    server.end_input();
    assert!(server.wait().success());

    let config = unpacked.folder.path().join("my boards.yaml");
    fs::write(&config, "boards: [{name: mine, link: 'sim:'}]\n").unwrap();
    let mut server = unpacked.start(Some(&config));
    assert_eq!(boards(&mut server), ["mine"]);
    server.end_input();
    assert!(server.wait().success());
}

#[test]
fn the_official_tool_takes_the_manifest() {
    let node = match Node::find() {
        Ok(node) => node,
        Err(why) => return clients::skip("Node with mcpb", &why),
    };
    let unpacked = Unpacked::new();
    let validate = |manifest: &Path| {
        let mut mcpb = node.package(MCPB);
        mcpb.arg("validate").arg(manifest);
        clients::ended(mcpb).unwrap()
    };
    let path = unpacked.folder.path().join("manifest.json");
    let (said, is_good) = validate(&path);
    assert!(is_good && said.contains("validation passes"), "{said}");
    let mut broken = unpacked.manifest.clone();
    broken["server"]["type"] = "rust".into();
    fs::write(&path, broken.to_string()).unwrap();
    assert!(!validate(&path).1, "a wrong manifest must not pass, or this test says nothing");
}
