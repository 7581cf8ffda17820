/** Runs the `sh` blocks of all pages on a cluster that docs/first-steps.md set up. */
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { patternOf } from "../docs/support/doc-commands.ts";
import { controlPlane } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { type Newcomer, newcomer } from "./support/newcomer.ts";
import { removeAtEnd } from "./support/processes.ts";
import { until } from "./support/until.ts";

/** The pages run in this order, because some change objects that others show. */
const PAGES = ["README.md", ...readdirSync("docs").flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : []))];

const TAKES_AWAY = "what other pages use; test/e2e/first-steps.e2e.ts takes it away at its end";

/** Commands that run elsewhere, with the place. Every row must match a command. */
const ELSEWHERE: readonly (readonly [RegExp, string])[] = [
  [/^npm ci( && npm (run demo|test))?$/, "steps of CI"],
  [/^npm run deploy -- /, "takes an AWS account; infra/aws/check.sh packages it with such parameters"],
  [/^npm run deploy:all -- /, "takes an AWS account; test/e2e/deploy.e2e.ts runs it with a stand-in for AWS"],
  [/^npx osls /, "takes an AWS account"],
  [/ --context eu\b/, "another cluster; test/e2e/clusters.e2e.ts has three"],
  [/^git fetch --tags /, "another release"],
  [/^(cosign verify|gh attestation)/, "a published release; test/install/release.install.ts verifies what it builds"],
  [/^kubectl get mutatingwebhookconfigurations.* xargs kubectl delete$/, TAKES_AWAY],
  [/^aws (ssm delete-parameter|sns delete-topic) /, TAKES_AWAY],
  [/^for role in .*list-access-entries/, TAKES_AWAY],
  [/^npm run --silent sidecarset -- uninstall /, TAKES_AWAY],
  [/^kubectl delete (--ignore-not-found -f infra\/rbac\/optional|crd sidecarsets|sidecarsets --all)/, TAKES_AWAY],
];

/** Values for the words that a reader replaces. */
const MEANT: readonly (readonly [RegExp, string])[] = [
  [/\bsidecarset NAME\b/g, "sidecarset log-agent"],
  [/\bsidecarset\/NAME\b/g, "sidecarset/log-agent"],
  [/npm run deploy:all -- [^&\n]*/g, "true "],
  // A registration whose address leads nowhere would break the working webhooks.
  [/((?:install|webhooks) (?!--argocd)[\s\S]*\| kubectl apply) /g, "$1 --dry-run=server "],
  [/(kubectl apply) (-f infra\/webhooks\/)/g, "$1 --dry-run=server $2"],
];

/** The marker for the command that registers the webhooks of docs/first-steps.md. */
const REGISTER = "register";
const HINTS = "sidecarset-status-hints-webhook-configuration";

function removeFrom(field: string): string {
  return `kubectl patch sidecarset log-agent --type json -p '[{"op":"remove","path":"/spec/${field}"}]'`;
}

/** Commands that run before a page's command, or undo it afterwards. */
const AROUND: readonly { readonly command: RegExp; readonly before?: string; readonly after?: string }[] = [
  // Another deployment's secret is in a file of the same name.
  { command: /put-parameter .*path-secrets; \}\)$/, before: "cp path-secrets kept", after: "mv kept path-secrets" },
  { command: /> path-secrets\)$/, before: "cp path-secrets kept" },
  { command: /^\[ "\$\(wc -l < path-secrets/, after: "mv kept path-secrets" },
  { command: /^sidecarset canary/, before: "kubectl apply -f infra/demo/log-agent.yaml" },
  {
    command: /^sidecarset abort/,
    before: "sidecarset canary log-agent fluent-bit=fluent/fluent-bit:4.1.3 --share 10%",
  },
  {
    command: /^kubectl get mutatingadmissionpolicy/,
    after: "kubectl delete mutatingadmissionpolicy,mutatingadmissionpolicybinding --all",
  },
  {
    // Readers come to this page from first steps. Their cluster has no canary of other pages, and each of its pods has
    // a workload.
    command: /sidecarset.kruise.io\/replace=/,
    before: `kubectl delete pod web; kubectl patch sidecarset log-agent --type json -p '[{"op":"remove","path":"/spec/injectionStrategy"}]'`,
  },
  { command: /^sha256sum --check/, before: "date > archive; sha256sum archive > SHA256SUMS" },
  { command: /install --argocd/, before: "kubectl create namespace argocd" },
  { command: /migrate from-kruise/, before: "cp tls.crt ca.crt" },
  {
    command: /halt-on}'=3/,
    before: "kubectl annotate --overwrite sidecarset log-agent sidecarset.kruise.io/halt-on=3",
    after: "kubectl annotate sidecarset log-agent sidecarset.kruise.io/halt-on-",
  },
  // Later pages start more rollouts.
  { command: /kruise.io\/gate=/, after: "kubectl annotate sidecarset log-agent sidecarset.kruise.io/gate-" },
  {
    command: /undo-on-halt=true/,
    after: "for one in halt-on undo-on-halt; do kubectl annotate sidecarset log-agent sidecarset.kruise.io/$one-; done",
  },
  { command: /^kubectl patch .*"namespaceSelector":/, after: removeFrom("namespaceSelector") },
  { command: /^kubectl patch .*"selector":/, after: removeFrom("selector/matchExpressions") },
  { command: /^kubectl delete validatingwebhookconfiguration sidecarset-validating/, after: REGISTER },
  {
    command: new RegExp(`^kubectl delete validatingwebhookconfiguration ${HINTS}`),
    before: `echo '{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"${HINTS}"}}' | kubectl apply -f -`,
  },
];

/** Exit codes of commands that report a finding. */
const ENDS_WITH: readonly (readonly [RegExp, number])[] = [[/check --pre/, 4]];

interface Block {
  readonly page: string;
  readonly line: number;
  readonly commands: readonly string[];
  /** the output that follows the block on the page */
  readonly printed: readonly string[];
}

/** Splits a block into commands. A command may have several lines. */
function commandsOf(block: string): readonly string[] {
  const commands: string[] = [];
  let open = "";
  for (const line of block.trimEnd().split("\n")) {
    open = open === "" ? line : `${open}\n${line}`;
    // The shell tells incomplete commands apart.
    if (line.endsWith("\\") || spawnSync("bash", ["-n", "-c", open]).status !== 0) continue;
    commands.push(open.replace(/\s+# .*$/, ""));
    open = "";
  }
  return commands;
}

function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(page, "utf8");
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```\n(?:\n```\n([\s\S]*?)^```\n)?/gm)].map((match) => ({
    page,
    line: text.slice(0, match.index).split("\n").length,
    commands: commandsOf(match[1] ?? ""),
    printed: (match[2] ?? "").split("\n").filter(Boolean),
  }));
}

const isElsewhere = (command: string) => ELSEWHERE.some(([pattern]) => pattern.test(command));
const blocks = PAGES.filter((page) => page !== "docs/first-steps.md").flatMap(blocksOf);
const typed = blocks.filter(({ commands }) => !commands.some(isElsewhere) || commands.length > 1);

/** Creates a stand-in for AWS' CLI that knows the commands of the pages, and writes each call to a file as a line. */
async function awsStandIn(): Promise<{ readonly folder: string; readonly calls: () => Promise<readonly string[]> }> {
  const folder = await mkdtemp(join(tmpdir(), "documents-"));
  removeAtEnd(folder);
  const script = [
    "#!/usr/bin/env bash",
    `echo "$*" >> ${folder}/calls`,
    'file=$(sed -nE "s/.*file:\\/\\/([^ ]+).*/\\1/p" <<<"$*")',
    '[ -z "$file" ] || test -s "$file" || { echo "no such file: $file" >&2; exit 255; }',
    'case "$1 $2" in',
    // The rotated deployment has a secret. The one made by hand has none yet.
    `"ssm get-parameter") case "$*" in *--region*) echo ${"s".repeat(43)} ;; *) exit 254 ;; esac ;;`,
    `"ssm put-parameter") echo '{ "Version": 1, "Tier": "Standard" }' ;;`,
    '"cloudformation describe-stacks") key=$(sed -nE "s/.*OutputKey==.([A-Za-z]+).*/\\1/p" <<<"$*"); echo "https://$key.lambda-url.eu-central-1.on.aws/" ;;',
    "esac",
  ];
  writeFileSync(join(folder, "aws"), `${script.join("\n")}\n`);
  chmodSync(join(folder, "aws"), 0o755);
  return { folder, calls: async () => (await readFile(join(folder, "calls"), "utf8")).trimEnd().split("\n") };
}

let user: Newcomer;
let aws: Awaited<ReturnType<typeof awsStandIn>>;

beforeAll(async () => {
  aws = await awsStandIn();
  const more = { PATH: `${aws.folder}:${process.env["PATH"]}`, AWS_REGION: "eu-central-1" };
  user = await newcomer(more);
  const [install, serve = [], deploy = []] = user.blocks;
  await user.typeAll(install);
  const often = serve.map((command) => command.replace("--tick 10s", "--tick 1s"));
  // docs/disruption-budgets.md needs passes that read these budgets.
  await user.serve(often, "RespectDisruptionBudgets=true");
  await user.typeAll(deploy.map((command) => command.replace("200", "20")));
});

/** Objects that pages create and docs/first-steps.md does not delete. */
const LEFT = [
  "-f infra/rbac/optional -f infra/crd/containerrecreaterequests.yaml -f infra/crd/statefulsets.yaml",
  "clusterrolebinding sidecarset-viewers-of-sre sidecarsets-read-of-shop",
  "clusterrole sidecarsets-read",
  "namespace argocd",
  "pod web",
];

afterAll(async () => {
  for (const what of LEFT) await user?.type(`kubectl delete --ignore-not-found --wait=false ${what}`);
  await user?.leave();
  await user?.close();
});

/** Returns the functions that the page's blocks define. */
const definitions = (page: string) =>
  typed.flatMap((block) => (block.page === page ? block.commands.filter((one) => /^\w+\(\) /.test(one)) : []));

function meant(command: string): string {
  return MEANT.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), command);
}

/**
 * Waits until passes have recorded the change, as a reader waits before the next command. If there is no result, the
 * next block says so.
 */
async function untilRecorded(): Promise<void> {
  const cluster = clusterOf(controlPlane());
  const areRecorded = async () => {
    const { items } = await cluster.list<SidecarSet>(SIDECARSETS, {});
    return items.every(({ metadata, status }) => status?.observedGeneration === metadata?.generation);
  };
  await until("passes have recorded all changes", areRecorded, 15_000).catch(() => undefined);
}

async function typeOne(page: string, command: string): Promise<string> {
  const around = AROUND.find((one) => one.command.test(command));
  await untilRecorded();
  if (around?.before !== undefined) await user.type(around.before);
  await untilRecorded();
  const [, code = 0] = ENDS_WITH.find(([pattern]) => pattern.test(command)) ?? [];
  const line = code === 0 ? meant(command) : `{ ${meant(command)}; } || test $? -eq ${code}`;
  const printed = await user.type([...definitions(page), line].join("\n"));
  if (around?.after === REGISTER) await user.type(user.blocks[0]?.at(-1) ?? "");
  else if (around?.after !== undefined) await user.type(around.after);
  return printed;
}

/** Drops the words that only say whether an object existed. */
const plain = (text: string) =>
  text.replaceAll(" (server dry run)", "").replace(/ (?:created|configured|unchanged)$/gm, " created");

describe("the commands of the pages", { timeout: 300_000 }, () => {
  it("the test covers every block of the page", () => {
    expect(typed.length).toBeGreaterThanOrEqual(35);
    for (const [pattern] of ELSEWHERE)
      expect(
        blocks.flatMap(({ commands }) => commands).some((one) => pattern.test(one)),
        String(pattern),
      ).toBe(true);
  });

  it.each(typed.map((block) => [`${block.page}:${block.line}`, block] as const))("%s", async (_title, block) => {
    const printed: string[] = [];
    for (const command of block.commands.filter((one) => !isElsewhere(one)))
      printed.push(await typeOne(block.page, command));
    if (block.printed.length > 0) expect(plain(printed.join(""))).toMatch(patternOf(block.printed));
  });

  it("the commands of the pages call AWS' CLI as written", async () => {
    const calls = await aws.calls();
    const count = (start: string) => calls.filter((call) => call.startsWith(start)).length;
    expect(count("eks create-access-entry --cluster-name NAME --principal-arn https://")).toBe(4);
    expect(count("ssm put-parameter --type SecureString")).toBe(4);
    expect(count("cloudwatch put-dashboard")).toBe(1);
  });
});
