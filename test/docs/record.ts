/** Runs README's session on an embedded cluster and writes its picture: `node test/docs/record.ts`. */
import { writeFile } from "node:fs/promises";
import { openDocScene } from "./support/doc-commands.ts";
import { CHANGE, COLUMNS, runInTerminal, SESSION } from "./support/session.ts";
import { type Shown, sessionSvg } from "./support/session-svg.ts";

const scene = await openDocScene();
try {
  await scene.run(CHANGE);
  const session: Shown[] = [];
  for (const command of SESSION) session.push({ command, printed: await runInTerminal(command, scene) });
  await writeFile("docs/session.svg", sessionSvg(session, COLUMNS));
} finally {
  await scene.close();
}
