/** `report`: one HTML file about a SidecarSet, or about all. */
import { writeFile } from "node:fs/promises";
import { systemClock } from "../../../shared/controller/loop/clock.ts";
import { type ReadReportContext, readDetail, readOverview } from "../../../shared/controller/rollout/read-report.ts";
import type { ReportContent, SetDetail } from "../../../shared/core/inspect/report/content.ts";
import { renderPage } from "../../../shared/core/inspect/report/page.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command } from "../command.ts";

const FORMATS = ["json", "yaml", "table"];

export const REPORT: Command = {
  name: "report",
  group: "Look",
  summary: "a page about rollouts, as one HTML file",
  details: "Progress, batches, pods by workload and node, what holds pods back, and the history. It needs no network.",
  arguments: [{ name: "[NAME]", about: "of a SidecarSet; default: all", completion: "sidecarset" }],
  outputs: "file",
  examples: ["sidecarset report log-agent -o report.html", "sidecarset report > report.html"],
  run: async (input, session) => {
    const file = session.outputFile;
    if (file !== undefined && FORMATS.includes(file))
      throw new CliError(
        `-o ${file}: a report is one HTML page, and -o names its file: write -o report.html; sidecarset status -o json prints data`,
      );
    if (file === undefined && session.screen.isTerminal)
      throw new CliError("-o is missing: the file to write, such as -o report.html");
    const cluster = await session.cluster();
    const context = {
      cluster,
      clusterName: "",
      clock: systemClock,
      kruiseNamespace: session.kruiseNamespace,
      settings: await session.passSettings(cluster),
    };
    const page = withoutSecrets(renderPage(await contentOf(context, input.arguments[0])));
    if (file === undefined || file === "-") session.screen.text(page);
    else await write(file, page);
    return 0;
  },
};

async function contentOf(context: ReadReportContext, name: string | undefined): Promise<ReportContent> {
  const all = await readOverview(context);
  const sets = (all.sets ?? []).filter((set) => name === undefined || set.name === name);
  if (name !== undefined && sets.length === 0)
    throw new CliError(`${name}: there is no such SidecarSet; kubectl get sidecarsets lists them`);
  const details: SetDetail[] = [];
  for (const set of sets) {
    const detail = await readDetail(context, set.name);
    if (detail !== undefined) details.push(detail);
  }
  return { ...all, sets, details };
}

async function write(file: string, page: string): Promise<void> {
  try {
    await writeFile(file, page);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CliError(`${file}: cannot be written (${code}); check the path given to -o`, { cause });
  }
}
