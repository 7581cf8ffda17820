/** Plain JavaScript, because an older Node cannot read the TypeScript files that would name the wanted version. */
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `Node ${process.versions.node} is too old, 22.19 or newer is needed: run \`npm ci\` (on Linux and Windows it brings Node 24), or install Node 24.\n`,
  );
  process.exit(1);
}
