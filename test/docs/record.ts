/**
 * Writes the pictures of the documents: `node test/docs/record.ts`. README's recordings come from an embedded cluster.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { openDocScene } from "./support/doc-commands.ts";
import { CHANGE, COLUMNS, recordHalt, runInTerminal, SESSION } from "./support/session.ts";
import { type Shown, sessionSvg, wayPictures } from "./support/session-svg.ts";

await mkdir("docs/pictures", { recursive: true });
for (const [path, , svg] of wayPictures()) await writeFile(path, svg);

const scene = await openDocScene();
try {
  await scene.run(CHANGE);
  const session: Shown[] = [];
  for (const command of SESSION) session.push({ command, printed: await runInTerminal(command, scene) });
  await writeFile("docs/session.svg", sessionSvg(session, COLUMNS));
  await writeFile("docs/halt.svg", sessionSvg(await recordHalt(scene), COLUMNS));
} finally {
  await scene.close();
}
