import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FUNCTIONS } from "../../infra/build.ts";
import { startLocalCluster } from "../../infra/local/cluster.ts";

const run = promisify(execFile);

interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
}
interface Statement {
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

let folder: string;
let resources: readonly Resource[];
const ofType = (type: string) => resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);

/** The package is built without credentials and with an empty HOME. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-package-"));
  await run("npm", ["run", "package", "--", "--package", folder], { env: { PATH: process.env["PATH"], HOME: folder } });
  const text = await readFile(join(folder, "cloudformation-template-update-stack.json"), "utf8");
  resources = Object.values((JSON.parse(text) as { Resources: Record<string, Resource> }).Resources);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("errors before a deployment:", () => {
  test.each([
    ["a deployment without a cluster", "deploy", [], "no cluster is named"],
    ["an invalid value of a parameter", "package", ["--param=freshness-ms=1s"], "VIEW_FRESHNESS_MS=1s is not"],
    [
      "a parameter that does not exist",
      "package",
      ["--param=reserved-concurency=mutate-pod=9"],
      "perhaps reserved-concurrency",
    ],
    [
      "a misspelt parameter in a separate argument",
      "package",
      ["--param", "function-url=false"],
      "perhaps function-urls",
    ],
  ])("osls refuses %s in one sentence without a stack trace", async (_, command, parameters, sentence) => {
    const env = { PATH: process.env["PATH"], HOME: folder };
    const failure = (await run("osls", [command, ...parameters], { env }).catch((error: unknown) => error)) as {
      readonly stdout?: string;
      readonly stderr?: string;
    };
    const said = `${failure.stdout}${failure.stderr}`;
    expect(said).toContain(sentence);
    expect(said).not.toMatch(/^ +at /m);
  });
});

describe("osls invoke local -f dry-run:", () => {
  const invoke = (kubeconfig: string) =>
    run("osls", ["invoke", "local", "-f", "dry-run", "-d", '{"sidecarSet":"absent"}'], {
      env: { PATH: process.env["PATH"], HOME: folder, KUBECONFIG: kubeconfig, LOG_LEVEL: "error" },
    });

  test("osls invoke local prints the report of a dry run on the kubeconfig's cluster", async () => {
    const local = await startLocalCluster();
    const path = join(folder, "kubeconfig");
    await writeFile(path, local.kubeconfig());
    const { stdout } = await invoke(path);
    await local.close();
    expect(JSON.parse(stdout.slice(stdout.indexOf("{\n")))).toMatchObject({ isDryRun: true });
  });

  test("osls invoke local prints one sentence when the kubeconfig does not exist", async () => {
    const failure = (await invoke(join(folder, "nothing-here")).catch((error: unknown) => error)) as { stdout: string };
    const { errorMessage } = JSON.parse(failure.stdout.slice(failure.stdout.indexOf("{\n"))) as {
      errorMessage: string;
    };
    expect(errorMessage).toMatch(
      /^the kubeconfig \S+nothing-here cannot be read, there is no file \S+: set KUBECONFIG/,
    );
    expect(errorMessage).not.toContain("\n");
  });
});

/** Returns the file names in a zip, from its central directory. */
function namesIn(zip: Buffer): string[] {
  const names: string[] = [];
  const signature = Buffer.from([0x50, 0x4b, 0x01, 0x02]);
  for (let at = zip.indexOf(signature); at >= 0; at = zip.indexOf(signature, at + 4)) {
    names.push(zip.toString("utf8", at + 46, at + 46 + zip.readUInt16LE(at + 28)));
  }
  return names;
}

test("the package has one zip file for each function, with only the function's bundle", async () => {
  const zips = (await readdir(folder)).filter((name) => name.endsWith(".zip"));
  expect(zips.toSorted()).toEqual(FUNCTIONS.map((name) => `${name}.zip`).toSorted());
  for (const name of FUNCTIONS) {
    const names = namesIn(await readFile(join(folder, `${name}.zip`)));
    expect(names).toEqual(expect.arrayContaining([`dist/${name}/index.js`, `dist/${name}/package.json`]));
    expect(names.filter((file) => !file.startsWith(`dist/${name}/`))).toEqual([]);
  }
});

describe("the template of the package:", () => {
  test("every function runs Node 24 on arm64, has its own role, and keeps its logs for 30 days", () => {
    const functions = ofType("AWS::Lambda::Function");
    expect(functions).toHaveLength(FUNCTIONS.length);
    for (const properties of functions) {
      expect(properties).toMatchObject({
        Runtime: "nodejs24.x",
        Architectures: ["arm64"],
        LoggingConfig: { LogFormat: "JSON", SystemLogLevel: "WARN" },
      });
    }
    const roles = functions.map(({ Role }) => JSON.stringify(Role));
    expect(new Set(roles).size).toBe(FUNCTIONS.length);
    const logs = ofType("AWS::Logs::LogGroup");
    expect(logs).toHaveLength(FUNCTIONS.length);
    for (const properties of logs) expect(properties["RetentionInDays"]).toBe(30);
  });

  test("no role has a wildcard in its actions or its resources, except for its own log streams", () => {
    const statements = ofType("AWS::IAM::Role").flatMap(({ Policies }) =>
      (Policies as { PolicyDocument: { Statement: Statement[] } }[]).flatMap(
        ({ PolicyDocument }) => PolicyDocument.Statement,
      ),
    );
    expect(statements.length).toBeGreaterThan(FUNCTIONS.length);
    const wildcards = statements.flatMap(({ Action, Resource }) => {
      const withoutStreams = JSON.stringify(Resource).replace(/(log-group:\/aws\/lambda\/[a-z-]+):\*"/g, '$1"');
      return [JSON.stringify(Action), withoutStreams].filter((text) => /[*?]/.test(text));
    });
    expect(wildcards).toEqual([]);
    expect(ofType("AWS::IAM::Policy")).toEqual([]);
    expect(JSON.stringify(resources)).not.toContain("ManagedPolicyArns");
  });

  test("only the four webhooks get the path secrets, and only four roles may read parameters", () => {
    const readers = ofType("AWS::Lambda::Function").map(({ FunctionName, Environment }) => {
      const { Variables } = Environment as { Variables: Record<string, unknown> };
      return [String(FunctionName), "PATH_SECRETS" in Variables];
    });
    expect(Object.fromEntries(readers)).toEqual({
      "sidecarset-prod-mutate-pod": true,
      "sidecarset-prod-mutate-sidecarset": true,
      "sidecarset-prod-validate-sidecarset": true,
      "sidecarset-prod-convert-sidecarset": true,
      "sidecarset-prod-rollout": false,
      "sidecarset-prod-dry-run": false,
      "sidecarset-prod-ordered-set": false,
    });
    const reading = ofType("AWS::IAM::Role").filter((role) => JSON.stringify(role).includes("ssm:GetParameter"));
    expect(reading).toHaveLength(4);
  });

  test("the schedule calls the rollout function every minute without retries and keeps undelivered calls in a queue", () => {
    const schedules = ofType("AWS::Scheduler::Schedule");
    expect(schedules).toMatchObject([
      { ScheduleExpression: "rate(5 minutes)", Target: { Input: '{"keepWarm":true}' } },
      {
        ScheduleExpression: "rate(1 minute)",
        FlexibleTimeWindow: { Mode: "OFF" },
        Target: {
          RetryPolicy: { MaximumRetryAttempts: 0 },
          DeadLetterConfig: { Arn: { "Fn::GetAtt": ["UndeliveredTicks", "Arn"] } },
        },
      },
    ]);
    expect(ofType("AWS::Lambda::EventInvokeConfig")).toMatchObject(Array(2).fill({ MaximumRetryAttempts: 0 }));
    const limited = ofType("AWS::Lambda::Function").filter(
      (properties) => "ReservedConcurrentExecutions" in properties,
    );
    // A new AWS account has no concurrency to reserve.
    expect(limited).toEqual([]);
    expect(ofType("AWS::SQS::Queue")).toMatchObject([{ SqsManagedSseEnabled: true }]);
  });

  test("the template has alarms for errors, throttles, undelivered calls of the schedule and missing calls", () => {
    const alarms = ofType("AWS::CloudWatch::Alarm");
    const metrics = alarms.flatMap((alarm) => JSON.stringify(alarm).match(/"MetricName":"\w+"/g) ?? []);
    const names = new Set(metrics.map((metric) => metric.slice(14, -1)));
    expect([...names].toSorted()).toEqual([
      "Attention",
      "Errors",
      "Invocations",
      "MissedPods",
      "PodErrors",
      "RefusedCallers",
      "SidecarSetErrors",
      "Throttles",
      "Url5xxCount",
    ]);
    const aboutNone = alarms.filter((alarm) => JSON.stringify(alarm).includes('"Invocations"'));
    expect(aboutNone).toMatchObject([{ TreatMissingData: "breaching", ComparisonOperator: "LessThanThreshold" }]);
  });

  test("infra/aws/README.md lists the number, the purpose and the price of each kind of resource", async () => {
    const rows = (await readFile("infra/aws/README.md", "utf8"))
      .split("\n")
      .filter((line) => line.startsWith("| `AWS::"));
    const told = rows.flatMap((row) => {
      const [, kinds = "", counts = "", purpose = "", costs = ""] = row.split("|").map((cell) => cell.trim());
      expect([purpose, costs]).toEqual([expect.stringMatching(/\w{4}/), expect.stringMatching(/nothing|\$/)]);
      const numbers = counts.split(" and ").map(Number);
      return [...kinds.matchAll(/`(AWS::[\w:]+)`/g)].map(([, kind = ""], index) => [kind, numbers[index]] as const);
    });
    expect(told.length).toBeGreaterThan(10);
    const kinds = [...new Set(resources.map(({ Type }) => Type))];
    const byKind = kinds.map((kind) => [kind, kind.endsWith("EventInvokeConfig") ? Number.NaN : ofType(kind).length]);
    const here = told.filter(([kind]) => kinds.includes(kind));
    expect(Object.fromEntries(here)).toEqual(Object.fromEntries(byKind));
  });
});
