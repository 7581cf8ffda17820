/** Reads the commands of a page, each with its promised output. */
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { buildCli } from "../../../infra/build-cli.ts";
import { applyAll, changeImages, followTicks, look, promote, untilPodsStand } from "../../../infra/demo/rollout.ts";
import { readManifests, type Stage, setStage } from "../../../infra/demo/stage.ts";
import { progressView } from "../../../infra/demo/summary.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { createStatefulSet } from "./doc-set.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const SAMPLE = ["log-agent.yaml", "web.yaml"];
const SET = "infra/demo/db.yaml";

export interface DocCommand {
  /** number of the line in the page */
  readonly line: number;
  readonly command: string;
  readonly printed: readonly string[];
}

/** Returns the commands of all blocks marked `console`: each line after `$ ` with its output. */
export function commandsOf(page: string): readonly DocCommand[] {
  const commands: { line: number; command: string; printed: string[] }[] = [];
  let isInside = false;
  for (const [index, line] of page.split("\n").entries()) {
    if (line.startsWith("```")) isInside = !isInside && line === "```console";
    else if (isInside && line.startsWith("$ ")) commands.push({ line: index + 1, command: line.slice(2), printed: [] });
    else if (isInside) commands.at(-1)?.printed.push(line);
  }
  return commands;
}

/** Returns a pattern. `…` matches any text within a line; alone on a line it matches any number of lines. */
export function patternOf(printed: readonly string[]): RegExp {
  const lines = printed.map((line) =>
    line.trim() === "…" ? "(?:.*\n)*?" : `${line.split("…").map(escaped).join(".*")}\n`,
  );
  return new RegExp(`^${lines.join("")}$`);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** The cluster that `demo --keep` leaves running, and a shell in a folder with the demo's manifests. */
export interface DocScene {
  readonly folder: string;
  readonly kubeconfig: string;
  readonly client: Cluster;
  /** stdout and stderr as a terminal shows them */
  readonly run: (command: string) => Promise<string>;
  readonly close: () => Promise<void>;
}

const quiet = { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream;

async function untilDemoIsOver(stage: Stage): Promise<void> {
  await applyAll(stage, await readManifests(SAMPLE.map((name) => join(ROOT, "infra/demo", name))));
  const view = progressView(quiet);
  const deadline = performance.now() + 500_000;
  const settle = async () => {
    if (!(await followTicks(stage, view, deadline))) throw new Error("the demo's rollout is not over in time");
  };
  await changeImages(stage, await untilPodsStand(stage));
  await settle();
  await promote(stage, await look(stage));
  await settle();
}

export async function openDocScene(): Promise<DocScene> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-docs-"));
  const stage = await setStage();
  await Promise.all([untilDemoIsOver(stage), createStatefulSet(stage, ROOT)]);
  // This bundle of the command line starts at once.
  await mkdir(join(folder, "bin"));
  await symlink(await buildCli(join(folder, "cli")), join(folder, "bin/sidecarset"));
  await mkdir(join(folder, "infra/demo"), { recursive: true });
  for (const name of SAMPLE)
    for (const place of [name, join("infra/demo", name)])
      await copyFile(join(ROOT, "infra/demo", name), join(folder, place));
  await copyFile(join(ROOT, SET), join(folder, basename(SET)));
  const path = [join(folder, "bin"), dirname(process.execPath), process.env["PATH"]].join(":");
  const env = { ...process.env, KUBECONFIG: stage.kubeconfig, PATH: path };
  const run = (command: string) =>
    new Promise<string>((done) => {
      execFile("sh", ["-c", `exec 2>&1; ${command}`], { cwd: folder, env, timeout: 500_000 }, (_error, stdout) =>
        done(stdout),
      );
    });
  const close = async () => {
    await stage.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, kubeconfig: stage.kubeconfig, client: stage.client, run, close };
}
