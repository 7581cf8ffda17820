/** What package.json is in the npm package: everything is bundled, so no other package is asked for. */

const OF_THE_REPOSITORY = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "workspaces",
  "scripts",
  "allowScripts",
];

/** `text` is that of the repository. */
export function packedManifest(text: string): string {
  const kept = Object.entries(JSON.parse(text)).filter(([name]) => !OF_THE_REPOSITORY.includes(name));
  return `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`;
}
