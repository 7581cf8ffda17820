import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HttpsCluster, startHttpsCluster } from "../controller/fixture.ts";
import { type Outcome, runCli, runHere } from "./run-cli.ts";

// A process may be slow on a busy machine.

let folder: string;
let cluster: HttpsCluster;
let busyPort: number;
const busy = createServer();
const path = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "bad-input-"));
  cluster = await startHttpsCluster();
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
  busyPort = (busy.address() as { port: number }).port;
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], { keyType: "ec" });
  const nowhere = cluster.kubeconfig.replace(/https:\S+/, "https://127.0.0.1:1");
  const files: Readonly<Record<string, string>> = {
    kubeconfig: cluster.kubeconfig,
    "kubeconfig-nowhere": nowhere,
    "kubeconfig-expired": cluster.kubeconfig.replace(/token: \S+/, "token: of-yesterday"),
    "kubeconfig-broken": "clusters: [",
    "kubeconfig-empty": "{}",
    "tls.crt": cert,
    "tls.key": key,
    "not-a.crt": "hello",
    "path-secrets": `${"a".repeat(43)}\n`,
    "short-secret": "hunter2\n",
    "three-secrets": `${"a".repeat(43)}\n${"b".repeat(43)}\n${"c".repeat(43)}\n`,
    "no-secret": "\n",
    "syntax.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n   labels: y\n",
    "syntax.json": '{"apiVersion": "v1",\n "kind": "Pod"',
    "kind.yaml": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n",
    "nameless.yaml": "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n",
    "list.yaml": "- a\n- b\n",
    "empty.yaml": "# nothing\n",
    "wrong-version.yaml": "apiVersion: apps.kruise.io/v1\nkind: SidecarSet\nmetadata: {name: x}\nspec: {}\n",
    "no-selector.yaml":
      "apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet\nmetadata: {name: x}\nspec: {containers: [{name: a, image: 'b:1'}]}\n",
    "no-containers.yaml":
      "apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet\nmetadata: {name: x}\nspec: {selector: {matchLabels: {a: b}}}\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path(name), text);
});

afterAll(async () => {
  await cluster.close();
  busy.close();
  await rm(folder, { recursive: true });
});

const serve = (options: Readonly<Record<string, string>>) => {
  const all = {
    kubeconfig: path("kubeconfig"),
    port: "0",
    "tls-cert": path("tls.crt"),
    "tls-key": path("tls.key"),
    "path-secrets": path("path-secrets"),
    ...options,
  };
  return ["serve", ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])];
};

const serveWithout = (option: string) => {
  const args = serve({});
  const at = args.indexOf(`--${option}`);
  return args.toSpliced(at, 2);
};

/** Rows: the name of the wrong input, the arguments, and a part of the expected sentence. */
const ROWS: readonly (readonly [string, () => readonly string[], RegExp])[] = [
  ["an unknown command", () => ["roll"], /^roll: no such command; --help lists them all/],
  ["a misspelled command", () => ["serv"], /^serv: no such command, perhaps serve;/],
  ["a command named like a property of every object", () => ["constructor"], /^constructor: no such command/],
  ["webhooks without --url", () => ["webhooks"], /--url is missing/],
  ["a --url without TLS", () => ["webhooks", "--url", "http://x"], /--url http:\/\/x: API servers call https only/],
  ["a --url without a scheme", () => ["webhooks", "--url", "x.example.com"], /API servers call https only/],
  [
    "a failure policy that does not exist",
    () => ["webhooks", "--url", "https://x", "--failure-policy", "Maybe"],
    /--failure-policy Maybe: write Ignore .* or Fail/,
  ],
  [
    "a --ca-bundle that is not a certificate",
    () => ["webhooks", "--url", "https://x", "--ca-bundle", path("not-a.crt")],
    /not-a\.crt: there is no certificate/,
  ],
  [
    "a --ca-bundle that does not exist",
    () => ["webhooks", "--url", "https://x", "--ca-bundle", path("nope.crt")],
    /nope\.crt: the file cannot be read/,
  ],
  [
    "a path secret that is too short, without a copy of it,",
    () => ["webhooks", "--url", "https://x", "--path-secrets", path("short-secret")],
    /^(?!.*hunter2).*short-secret: the first line is no secret/,
  ],
  [
    "--digests for a path secret that is too short, without a copy of it,",
    () => ["path-secrets", "--path-secrets", path("short-secret"), "--digests"],
    /^(?!.*hunter2).*short-secret: line 1 is no secret/,
  ],
  [
    "--digests with a path",
    () => ["path-secrets", "--path-secrets", path("path-secrets"), "--digests", "/convert"],
    /^--digests are of all paths: leave \/convert out/,
  ],
  [
    "--digests with three path secrets",
    () => ["path-secrets", "--path-secrets", path("three-secrets"), "--digests"],
    /three-secrets: 3 secrets; two are valid at most/,
  ],
  [
    "--like-openkruise together with --from-cluster",
    () => ["webhooks", "--url", "https://x", "--like-openkruise", "--from-cluster"],
    /choose one of --like-openkruise and --from-cluster/,
  ],
  [
    "--static together with --from-cluster",
    () => ["install", "--url", "https://x", "--static", "file", "--from-cluster"],
    /choose one of --static and --from-cluster/,
  ],
  [
    "--static file for a Service of the cluster",
    () => ["install", "--url", "https://webhooks.sidecarset.svc", "--static", "file"],
    /API servers call no Service by a file/,
  ],
  [
    "--from-cluster for a cluster that does not answer",
    () => ["webhooks", "--url", "https://x", "--from-cluster", "--kubeconfig", path("kubeconfig-nowhere")],
    /127\.0\.0\.1/,
  ],
  ["an unknown option", () => ["demo", "--jsn"], /^--jsn: no such option, perhaps --json; `--help` lists them$/m],
  [
    "an option without its value",
    () => ["plan", "x", "--ready-after"],
    /^--ready-after <DURATION>: its value is missing$/m,
  ],
  ["one argument too many", () => ["check", "all"], /^check takes 0 words, and 1 were given; /],
  ["a missing argument", () => ["history"], /^NAME is missing; `--help` says what goes where$/m],
  [
    "a --request-timeout that is not a duration",
    () => ["status", "--request-timeout", "soon", "--kubeconfig", path("kubeconfig")],
    /--request-timeout soon: not a duration; write for example 500ms, 10s, 1m or 2h/,
  ],
  [
    "a partition that is not a number",
    () => ["set", "partition", "x", "many", "--kubeconfig", path("kubeconfig")],
    /^many: write a number of pods, or a share such as 10%$/m,
  ],
  ["a manifest without -f", () => ["demo", "web.yaml"], /web\.yaml: unexpected; write -f/],
  ["a manifest that does not exist", () => ["demo", "-f", path("nope.yaml")], /nope\.yaml: cannot be read \(ENOENT\)/],
  ["a YAML error, with line and column", () => ["demo", "-f", path("syntax.yaml")], /syntax\.yaml:4:9: /],
  ["a JSON error, with line and column", () => ["demo", "-f", path("syntax.json")], /syntax\.json:2:\d+: /],
  [
    "a kind that the demo does not run",
    () => ["demo", "-f", path("kind.yaml")],
    /kind\.yaml:1:1: batch\/v1 CronJob is not/,
  ],
  [
    "an object without a name",
    () => ["demo", "-f", path("nameless.yaml")],
    /nameless\.yaml:2:1: ConfigMap has no metadata\.name/,
  ],
  ["a manifest that is a list", () => ["demo", "-f", path("list.yaml")], /list\.yaml:1:1: not a Kubernetes object/],
  ["a manifest with only comments", () => ["demo", "-f", path("empty.yaml")], /no Kubernetes object in there/],
  [
    "a SidecarSet of an unknown version",
    () => ["demo", "-f", path("wrong-version.yaml")],
    /there is no SidecarSet of apiVersion apps\.kruise\.io\/v1; write apps\.kruise\.io\/v1beta1/,
  ],
  [
    "a SidecarSet without a selector",
    () => ["demo", "-f", path("no-selector.yaml")],
    /no selector defined for SidecarSet/,
  ],
  [
    "a SidecarSet without containers",
    () => ["demo", "-f", path("no-containers.yaml")],
    /no initContainer or container defined/,
  ],
  ["a kubeconfig that does not exist", () => ["tick", "--kubeconfig", path("nope")], /nope/],
  ["a kubeconfig that is not YAML", () => ["tick", "--kubeconfig", path("kubeconfig-broken")], /is not YAML/],
  ["an empty kubeconfig", () => ["tick", "--kubeconfig", path("kubeconfig-empty")], /kubeconfig/],
  [
    "a kubeconfig whose server does not answer",
    () => ["tick", "--kubeconfig", path("kubeconfig-nowhere")],
    /127\.0\.0\.1:1\b/,
  ],
  ["an expired token", () => ["tick", "--kubeconfig", path("kubeconfig-expired")], /401|expired|Unauthorized/i],
  [
    "a SidecarSet that does not exist",
    () => ["tick", "--kubeconfig", path("kubeconfig"), "--sidecarset", "nope"],
    /^SidecarSet nope: there is no such SidecarSet$/m,
  ],
  [
    "a duration without a unit",
    () => ["tick", "--kubeconfig", path("kubeconfig"), "--deadline", "5"],
    /--deadline 5: not a duration/,
  ],
  ["serve without options", () => ["serve"], /--port is missing/],
  ["a --port that is not a number", () => serve({ port: "http" }), /--port http: not a port/],
  [
    "a --port that is in use",
    () => serve({ port: String(busyPort), host: "127.0.0.1" }),
    /^port \d+ cannot be had: another program listens on it/,
  ],
  [
    "a --port that is in use, with --metrics-port",
    () => serve({ port: String(busyPort), host: "127.0.0.1", "metrics-port": "0" }),
    /^port \d+ cannot be had: another program listens on it/,
  ],
  [
    "a --tick of a millisecond",
    () => serve({ tick: "1ms" }),
    /^--tick 1ms: passes would ask the API server without a rest; write 1s or more/,
  ],
  ["a --tls-cert that does not exist", () => serve({ "tls-cert": path("nope.crt") }), /nope\.crt/],
  ["a --tls-cert that is not a certificate", () => serve({ "tls-cert": path("not-a.crt") }), /not-a\.crt|certificate/],
  [
    "serve without a way to authenticate callers",
    () => serveWithout("path-secrets"),
    /^no caller is let in by default: give --path-secrets/,
  ],
  [
    "--bearer-tokens without --path-secrets",
    () => [...serveWithout("path-secrets"), "--bearer-tokens", path("path-secrets")],
    /^--path-secrets is missing: API servers present/,
  ],
  [
    "--bearer-tokens together with --insecure",
    () => [...serve({ "bearer-tokens": path("path-secrets") }), "--insecure"],
    /^choose one of --client-ca, --bearer-tokens and --insecure/,
  ],
  [
    "--path-secrets together with --insecure",
    () => [...serve({}), "--insecure"],
    /^--insecure lets everybody in, whatever --path-secrets says: choose one of them/,
  ],
  [
    "--client-names without --client-ca",
    () => serve({ "client-names": "kube-apiserver" }),
    /^--client-names says whose certificates are known, and --client-ca, which says who signs them, is missing/,
  ],
  [
    "--ui-secrets with the file of --path-secrets",
    () => serve({ "ui-secrets": path("path-secrets") }),
    /^--ui-secrets and --path-secrets name the same file: API servers' secret would open the page/,
  ],
  ["--client-ca without --client-names", () => serve({ "client-ca": path("tls.crt") }), /^--client-names is missing/],
  [
    "a --client-ca that is not a certificate",
    () => serve({ "client-ca": path("not-a.crt"), "client-names": "a" }),
    /not-a\.crt is not a certificate in PEM/,
  ],
  [
    "--no-tls together with --tls-cert",
    () => [...serve({}), "--no-tls"],
    /^--no-tls and --tls-cert exclude each other/,
  ],
  [
    "a --path-secrets file that does not exist",
    () => serve({ "path-secrets": path("nope") }),
    /nope cannot be read: there is no/,
  ],
  [
    "a --path-secrets ARN of another service",
    () => serve({ "path-secrets": "arn:aws:s3:::x" }),
    /^--path-secrets names no place of a secret/,
  ],
  [
    "a --path-secrets file without a secret",
    () => serve({ "path-secrets": path("no-secret") }),
    /no-secret holds no secret/,
  ],
  [
    "a --path-secrets file with a secret that is easy to guess",
    () => serve({ "path-secrets": path("short-secret") }),
    /^line 1 of .*short-secret is not 43 characters of base64url/,
  ],
  [
    "a --path-secrets file with three secrets",
    () => serve({ "path-secrets": path("three-secrets") }),
    /holds 3 secrets: 2 at most/,
  ],
  [
    "a --metrics-port that is not a port number",
    () => serve({ "metrics-port": "90900" }),
    /^--metrics-port 90900: not a port number/,
  ],
  ["a kubeconfig that does not exist, given to serve", () => serve({ kubeconfig: path("nope") }), /nope/],
];

function expectOneSentence({ code, stdout, stderr }: Outcome, sentence: RegExp): void {
  expect(stderr).toMatch(sentence);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(stdout).not.toMatch(/^\s+at /m);
  expect(code).toBeGreaterThan(0);
}

/** Rows that also run as a process, because something might keep the process alive. */
const AS_PROCESS: ReadonlySet<string> = new Set([
  "an unknown command",
  "a --port that is in use",
  "a --port that is in use, with --metrics-port",
]);

describe("bad input:", () => {
  it.concurrent.each(ROWS)(
    "the command line refuses %s in one sentence and exits with a failure",
    async (_title, args, sentence) => {
      expectOneSentence(await runHere(args()), sentence);
    },
  );

  it.each(ROWS.filter(([title]) => AS_PROCESS.has(title)))(
    "the process ends after it refuses %s",
    async (_title, args, sentence) => {
      expectOneSentence(await runCli(args()), sentence);
    },
  );
});

it("the error about a PORT that is not a port number names the variable PORT", async () => {
  const refused = await runCli(serveWithout("port"), { PORT: "8080/tcp" });
  expectOneSentence(refused, /^the variable PORT 8080\/tcp: not a port number; write one between/);
});

it("every case that runs as a process is a row of the table of refused inputs", () => {
  expect(ROWS.filter(([title]) => AS_PROCESS.has(title))).toHaveLength(AS_PROCESS.size);
});

it.each([
  ["status", ["status"]],
  ["version", ["version"]],
])("%s waits for a silent API server no longer than --request-timeout says", async (_, words) => {
  const silent = createServer((socket) => socket.on("error", () => undefined).resume());
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as { port: number };
  const file = path("kubeconfig-silent");
  await writeFile(file, cluster.kubeconfig.replace(/https:\S+/, `https://127.0.0.1:${port}`));
  const { code, stderr } = await runHere([...words, "--kubeconfig", file, "--request-timeout", "200ms"]);
  expect(code).toBe(1);
  expect(stderr).toContain("within 200 ms");
  await new Promise((resolve) => silent.close(resolve));
});
