/** Runs ElasticMQ's server with Java. Maven fetches it once into .cache. */
import { execFile } from "node:child_process";
import { access, readFile, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { type Program, REGION, type Sqs, startServer } from "./server.ts";

const run = promisify(execFile);
const POM = join(import.meta.dirname, "elasticmq.xml");
const OPTIONS = {
  "rest-sqs.bind-hostname": "127.0.0.1",
  "rest-sqs.bind-port": "0",
  "generate-node-address": "true",
  "rest-stats.enabled": "false",
  "aws.region": REGION,
};

/** @throws Error with one sentence if there is no Java or Maven, or Maven cannot fetch */
export async function startSqs(): Promise<Sqs> {
  return startServer(await elasticMq());
}

async function elasticMq(): Promise<Program> {
  const [, version] = /<artifactId>elasticmq-server[\s\S]*?<version>(.+?)</.exec(await readFile(POM, "utf8")) ?? [];
  const folder = resolve(`.cache/elasticmq-${version}`);
  await run("java", ["-version"]).catch(fails("java -version fails"));
  if (!(await isThere(folder))) await fetchInto(folder);
  const options = Object.entries(OPTIONS).map(([name, value]) => `-D${name}=${value}`);
  return {
    name: `ElasticMQ ${version}`,
    command: "java",
    args: ["-Xmx256m", "-XX:+UseSerialGC", ...options, "-cp", join(folder, "*"), "org.elasticmq.server.Main"],
    endpointOf: (said) => /visible server address (http:\S+)/.exec(said)?.[1],
  };
}

/** Fetches the server. A file gets its final name only when it is complete. */
async function fetchInto(folder: string): Promise<void> {
  const begun = `${folder}-${process.pid}`;
  const args = ["-q", "-B", "-f", POM, "dependency:copy-dependencies", `-DoutputDirectory=${begun}`];
  await run("mvn", args).catch(fails("mvn -f test/aws-local/elasticmq.xml fails"));
  await rename(begun, folder).catch(() => rm(begun, { recursive: true, force: true }));
}

function fails(what: string) {
  return (cause: Error) => {
    throw new Error(
      `ElasticMQ, which stands for SQS, needs Java 17 and Maven: ${what}: ${cause.message.split("\n")[0]}`,
      { cause },
    );
  };
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
