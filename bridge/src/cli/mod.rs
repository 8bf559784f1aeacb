use clap::Parser;
#[derive(Parser)]
pub struct Cli {}
pub fn run(_: Cli) -> anyhow::Result<()> {
    Ok(())
}
