/**
 * Starts a real Prometheus from Debian on loopback. The package is only unpacked; an installed one would run as a
 * service of the machine.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { type Started, start } from "./processes.ts";
import { until } from "./until.ts";

const INSTALLED = "/usr/bin/prometheus";

export interface Prometheus {
  readonly url: string;
  readonly process: Started;
}

/** @throws if there is neither Prometheus nor apt */
function programIn(folder: string): string {
  if (existsSync(INSTALLED)) return INSTALLED;
  try {
    execFileSync("apt-get", ["update", "-qq"], { cwd: folder, stdio: "ignore" });
    execFileSync("apt-get", ["download", "-qq", "prometheus"], { cwd: folder, stdio: "ignore" });
    const [archive = ""] = readdirSync(folder).filter((name) => name.endsWith(".deb"));
    execFileSync("dpkg-deb", ["-x", archive, "."], { cwd: folder, stdio: "ignore" });
  } catch (cause) {
    throw new Error("there is no Prometheus here: apt-get install prometheus", { cause });
  }
  return join(folder, INSTALLED);
}

/** Scrapes `target` (host and port) every second. All its files are in `folder`. */
export async function startPrometheus(folder: string, target: string): Promise<Prometheus> {
  const program = programIn(folder);
  const [port = 0] = await freePorts(1);
  const scraping = { job_name: "sidecars", static_configs: [{ targets: [target] }] };
  const config = join(folder, "prometheus.yml");
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: "1s" }, scrape_configs: [scraping] }));
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const url = `http://127.0.0.1:${port}`;
  const process = start("prometheus", [program, ...args], join(folder, "prometheus.log"));
  await until("Prometheus is ready", async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true);
  return { url, process };
}
