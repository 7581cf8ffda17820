/** Tests `diff` and `plan` as comments on a pull request. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join, resolve } from "node:path";
import { json } from "node:stream/consumers";
import fc from "fast-check";
import { marked, type Tokens } from "marked";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import {
  alert,
  code,
  codeBlock,
  collapsed,
  markdownOf,
  markdownTable,
  prose,
} from "../../functions/terminal/markdown.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { isReady } from "../controller/fixture.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { runHere } from "./run-cli.ts";

let test: ServedCluster;
const file = (name: string) => join(test.folder, name);
const markdown = (...args: readonly string[]) => runHere(["--kubeconfig", test.kubeconfig, ...args, "-o", "markdown"]);

const newSet = (name: string, container: object = {}, spec: object = {}) => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    containers: [{ name: "proxy", image: "registry.example/proxy:1", ...container }],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 },
    ...spec,
  },
});

beforeAll(async () => {
  test = await startServedCluster();
  await test.client.create(SIDECARSETS, newSet("agent"));
  for (const name of ["agent-0", "agent-1", "agent-2"])
    await test.client.create(PODS, newPod({ namespace: "default", name, labels: { app: "agent" } }));
  await vi.waitFor(async () => {
    const { items } = await test.client.list(PODS, { namespace: "default" });
    expect(items.filter((pod) => isReady(pod as Parameters<typeof isReady>[0]))).toHaveLength(3);
  }, PATIENT);
});
afterAll(() => test?.close());

it("plan -o markdown says which containers restart in which pods, how many at once, for how long, and what follows", async () => {
  writeFileSync(file("agent.yaml"), stringify(newSet("agent", { image: "registry.example/proxy:2" })));
  const { code, stdout, stderr } = await markdown("plan", "-f", file("agent.yaml"), "--ready-after", "30s");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain(
    "| `agent` | 1 field | 3 in place | 3 pods in 2 steps, 1m, at most 2 unavailable at once |\n",
  );
  expect(stdout).toContain(
    '```diff\n  spec.containers{proxy}.image: updated in place\n- "registry.example/proxy:1"\n+ "registry.example/proxy:2"\n```\n',
  );
  expect(stdout).toContain("| `proxy` | `registry.example/proxy:1` | `registry.example/proxy:2` | 3 |\n");
  expect(stdout).toContain("All are updated and ready then.\n\n<details><summary>2 steps</summary>\n");
  expect(stdout).toMatch(/1\/2 {7}default\/agent-\d\n```\n\n<\/details>\n$/);
});

it("diff and plan name the drains and pulls before sidecars restart, and their times", async () => {
  const set = newSet("agent", { image: "registry.example/proxy:2" });
  const annotations = { "sidecarset.kruise.io/drain": "10s", "sidecarset.kruise.io/pre-pull": "1" };
  writeFileSync(file("drain.yaml"), stringify({ ...set, metadata: { ...set.metadata, annotations } }));
  const drain =
    /Pods are drained for 10s before\s+their sidecars restart; 3 pods have no label\s+sidecarset\.kruise\.io\/traffic=serving, and are updated at once\./;
  const pulls =
    /Images are pulled on \d nodes? before the pods there, at most 1 at once, so in \d\s+turns?\s+of ten minutes at most/;
  for (const verb of ["diff", "plan"]) {
    const comment = await markdown(verb, "-f", file("drain.yaml"));
    const table = await runHere(["--kubeconfig", test.kubeconfig, verb, "-f", file("drain.yaml")]);
    for (const { stdout } of [comment, table]) {
      expect(stdout.replaceAll(/[\\`]/g, "")).toMatch(drain);
      expect(stdout.replaceAll(/[\\`]/g, "")).toMatch(pulls);
    }
  }
});

it("a change that cannot be made in place says which pods need to be recreated, why, and by which command", async () => {
  writeFileSync(file("env.yaml"), stringify(newSet("agent", { env: [{ name: "A", value: "1" }] })));
  for (const verb of ["diff", "plan"]) {
    const { code, stdout } = await markdown(verb, "-f", file("env.yaml"));
    expect(code).toBe(verb === "diff" ? 0 : 3);
    expect(stdout).toContain("| `agent` | 1 field | 3 to be recreated |");
    expect(stdout).toContain(
      "| 3 | must be recreated to get it | `spec.containers{proxy}.env` | `default/agent-0` `default/agent-1` `default/agent-2` |\n",
    );
    expect(stdout).toContain(
      "```sh\nkubectl -n default delete pod agent-0 agent-1 agent-2  # nothing creates another\n```\n",
    );
  }
});

it("diff says how to make a literal argument changeable in place if the SidecarSet asks for in-place values", async () => {
  const set = newSet("agent", { args: ["--level", "warn"] });
  const annotations = { "sidecarset.kruise.io/in-place": "Values" };
  writeFileSync(file("args.yaml"), stringify({ ...set, metadata: { ...set.metadata, annotations } }));
  const comment = await markdown("diff", "-f", file("args.yaml"));
  const table = await runHere(["--kubeconfig", test.kubeconfig, "diff", "-f", file("args.yaml")]);
  for (const { stdout } of [comment, table])
    expect(stdout).toMatch(
      /\["--level","warn"\]\n +put what changes into a variable, and write\s+\$\(NAME\) here:\s+its next/,
    );
});

it("the comment about a folder has one row for each changed, unchanged, new and refused SidecarSet", async () => {
  mkdirSync(file("deploy/base"), { recursive: true });
  const write = (name: string, set: object) => writeFileSync(file(`deploy/${name}.yaml`), stringify(set));
  write("a", newSet("agent"));
  write("b", newSet("fresh", { name: "other" }, { selector: { matchLabels: { app: "agent" } } }));
  write("base/c", newSet("broken", {}, { updateStrategy: { type: "RollingUpdate", maxUnavailable: "many" } }));
  const { code, stdout, stderr } = await markdown("plan", "-f", file("deploy"));
  expect(code).toBe(2);
  expect(stdout).toContain("| `agent` | none | 3 have it already | nothing would be done |\n");
  expect(stdout).toContain("| `fresh` | new | 3 without sidecars |  |\n");
  expect(stdout).toContain("| `broken` | **refused** |  |  |\n");
  expect(stdout).toMatch(/> \[!CAUTION\]\n> - `\S*base\/c\.yaml:1:1`: .*`spec\.updateStrategy\.maxUnavailable`/);
  expect(stderr).toMatch(/base\/c\.yaml:1:1: .*spec\.updateStrategy\.maxUnavailable.*; correct it there\n$/);
  expect(stdout).not.toContain("#### `agent`");
  expect((await test.client.list(SIDECARSETS, {})).items).toHaveLength(1);
});

it("plan and diff fail when one SidecarSet is refused, even if another one differs or leaves pods behind", async () => {
  mkdirSync(file("worst"), { recursive: true });
  const write = (name: string, set: object) => writeFileSync(file(`worst/${name}.yaml`), stringify(set));
  write("a", newSet("agent", { env: [{ name: "A", value: "1" }] }));
  write("b", newSet("broken", {}, { updateStrategy: { type: "RollingUpdate", maxUnavailable: "many" } }));
  const plan = await markdown("plan", "-f", file("worst"));
  expect(plan.stdout).toContain("| `broken` | **refused** |");
  const diff = await markdown("diff", "--exit-code", "-f", file("worst"));
  expect([plan.code, diff.code]).toEqual([2, 2]);
});

it("plan NAME -o markdown describes the stored SidecarSet", async () => {
  const { code, stdout } = await markdown("plan", "agent");
  expect(code).toBe(0);
  expect(stdout).toContain("| `agent` | none | 3 of 3 updated | nothing would be done |\n");
});

it("a command that fails prints a Markdown comment too", async () => {
  const { code, stdout } = await markdown("plan", "-f", file("missing.yaml"));
  expect(code).toBe(2);
  expect(stdout).toMatch(
    /^> \[!CAUTION\]\n> - `\S*missing\.yaml`: cannot be read \(`?ENOENT`?\); check the path given to `-f`\n$/,
  );
});

it("long warnings and rows are cut to fit into a comment, and the comment counts the omitted ones", () => {
  const [sentences, rows] = [
    Array.from({ length: 20 }, () => "` ".repeat(499)),
    Array.from({ length: 50 }, () => ["x", "y".repeat(2_000)]),
  ];
  const [warning, table] = [alert("CAUTION", sentences), markdownTable(["SidecarSet", "change"], rows)];
  expect(warning).toMatch(/\n> - \d+ more$/);
  expect(table).toMatch(/\n\| \d+ more \| {2}\|$/);
  expect(markdownOf(["### title", table, warning], []).length).toBeLessThan(65_536);
});

/** Texts that somebody may write into a name, a value or a comment of a file. */
const HOSTILE = [
  ..."`|\\*_~<>[]()!#@:/&;$^={}\"'-+.\n\r\t\u202e 19aZ",
  ..."```,~~~,</details>,<script>,<!--,-->,@team,https://evil.example,www.evil.example,a@evil.example,![x](http://e),#1,GH-1,&lt;,&#64;,\\|,| --- |,> [!NOTE],:tada:,$`x`$,a#1,o/r#1".split(
    ",",
  ),
];
const hostile = fc.array(fc.constantFrom(...HOSTILE), { maxLength: 12 }).map((parts) => parts.join(""));

/** Returns the HTML tags that GitHub would create, and the text outside of code. */
function rendered(text: string) {
  const html = marked.parse(text, { async: false });
  const tags = new Set([...html.matchAll(/<\/?([a-z0-9]+)/g)].map(([, tag = ""]) => tag));
  const outside = html.replace(/<(code|pre)[^>]*>[\s\S]*?<\/\1>/g, "").replace(/<[^>]*>/g, "");
  return { tags: [...tags], outside };
}

it("no text from a file becomes a link, a mention, HTML or another table cell of the comment", () => {
  fc.assert(
    fc.property(hostile, hostile, (one, other) => {
      const { tags, outside } = rendered(`x ${code(one)} ${prose(other)} y`);
      expect(tags.filter((tag) => tag !== "p" && tag !== "code")).toEqual([]);
      expect(outside).toMatch(/^[\p{L}\p{N}\s().,;:%'\-→…&#39]*$/u);
      expect(outside).not.toMatch(/[@#<>]|www\.|:\/\//);

      const [parsed] = marked.lexer(
        markdownTable(
          ["a", "b"],
          [
            [code(one), prose(other)],
            [prose(one), code(other)],
          ],
        ),
      );
      expect(parsed?.type).toBe("table");
      expect((parsed as Tokens.Table).rows.map((row) => row.length)).toEqual([2, 2]);

      const quote = marked.lexer(alert("WARNING", [one, other]));
      expect(quote.map(({ type }) => type)).toEqual(["blockquote"]);

      const block = marked.lexer(collapsed("1 step", [codeBlock("text", [one, other]), "end"]));
      const inside = block.filter(({ type }) => type === "code");
      expect(inside).toHaveLength(1);
      expect(block.at(-2)?.type === "html" || block.at(-1)?.type === "html").toBe(true);
    }),
  );
});

it("a comment has at most 65,536 characters, and says how many sections do not fit", () => {
  const text = markdownOf(["begin"], ["a".repeat(40_000), "b".repeat(40_000), "c".repeat(100)]);
  expect(text.length).toBeLessThan(65_536);
  expect(text).toContain("c".repeat(100));
  expect(text).toMatch(/\n\n1 section is too long for a comment and left out\.\n$/);
});

it("a comment with too many warnings shows some of them and counts the others", () => {
  const text = alert(
    "WARNING",
    Array.from({ length: 60 }, () => "`a` b.c ".repeat(1_000)),
  );
  expect(text.length).toBeLessThan(50_000);
  expect(text).toMatch(/\n> - 40 more$/);
});

it("hostile text in a file appears only as code in the comment", async () => {
  const value = "x|`</code></details><script>alert(1)</script> @team https://evil.example\n```\n# end";
  const set = newSet("agent", { env: [{ name: "A", value }] }, { "](http://evil) @team <b>": 1 });
  writeFileSync(file("hostile.yaml"), stringify(set));
  const { stdout } = await markdown("plan", "-f", file("hostile.yaml"));
  expect(stdout).toContain("@team");
  const { tags, outside } = rendered(stdout.replace(/^<\/?(?:details|summary)>.*$/gm, ""));
  expect(tags).not.toContain("script");
  expect(tags).not.toContain("a");
  expect(tags).not.toContain("b");
  expect(outside).not.toContain("@");
});

const ACTION = resolve("infra/github-action/plan");
const step = parse(readFileSync(join(ACTION, "action.yml"), "utf8")).runs.steps[1];

interface Comment {
  readonly id: number;
  body: string;
  readonly user: { readonly type: string };
}

/** Serves the part of GitHub's API for comments: pages of issue comments, POST and PATCH. */
async function startGitHub(comments: Comment[]) {
  const server = createServer(async (request, response) => {
    const isAllowed = request.headers.authorization === "Bearer made-up";
    const { status, value } = isAllowed ? await answerOf(request, comments) : { status: 403, value: {} };
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as { readonly port: number };
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}

async function answerOf(request: IncomingMessage, comments: Comment[]) {
  const url = new URL(request.url ?? "", "http://github");
  if (request.method === "GET" && url.pathname === "/repos/shop/deploy/issues/7/comments") {
    const [size, page] = [Number(url.searchParams.get("per_page")), Number(url.searchParams.get("page"))];
    return { status: 200, value: comments.slice((page - 1) * size, page * size) };
  }
  const { body } = (await json(request)) as { readonly body: string };
  const [, one] = /^\/repos\/shop\/deploy\/issues\/comments\/(\d+)$/.exec(url.pathname) ?? [];
  const known = comments.find(({ id }) => id === Number(one));
  if (known) known.body = body;
  else comments.push({ id: comments.length + 1, body, user: { type: "Bot" } });
  return { status: known ? 200 : 201, value: {} };
}

/** Runs the action's step as a runner does. */
function runStep(files: string, env: Readonly<Record<string, string>>) {
  writeFileSync(file("summary.md"), "");
  return new Promise<{ readonly code: number; readonly stdout: string }>((done) => {
    const given = { FILES: files, KUBECONFIG_FILE: test.kubeconfig, READY_AFTER: "30s", TOKEN: "made-up" };
    const runner = {
      GITHUB_ACTION_PATH: ACTION,
      GITHUB_REPOSITORY: "shop/deploy",
      GITHUB_STEP_SUMMARY: file("summary.md"),
    };
    const options = { cwd: test.folder, env: { ...process.env, ...given, ...runner, PULL_REQUEST: "7", ...env } };
    execFile("bash", ["-c", step.run], options, (error, stdout) => done({ code: Number(error?.code ?? 0), stdout }));
  });
}

it("the action writes one comment, updates it in the next run, and shows the same text as the job's summary", async () => {
  const others = Array.from({ length: 100 }, (_, index) => ({ id: index + 1, body: "hm", user: { type: "User" } }));
  const comments: Comment[] = [{ id: 900, body: "<!-- sidecarset plan -->\nmine", user: { type: "User" } }, ...others];
  const github = await startGitHub(comments);
  try {
    expect(await runStep("env.yaml\n", { GITHUB_API_URL: github.url })).toEqual({ code: 0, stdout: "" });
    expect(comments).toHaveLength(102);
    expect(comments.at(-1)?.body).toContain("| `agent` | 1 field | 3 to be recreated |");
    await runStep("agent.yaml", { GITHUB_API_URL: github.url });
    expect(comments).toHaveLength(102);
    expect(comments.at(-1)?.body).toContain("| `agent` | 1 field | 3 in place | 3 pods in 2 steps, 1m,");
    expect(comments.at(-1)?.body).toBe(`<!-- sidecarset plan -->\n${readFileSync(file("summary.md"), "utf8")}`);
    expect(comments[0]?.body).toContain("mine");
  } finally {
    github.close();
  }
});

it("the action fails for a refused file after the comment is written, and says which permission is missing", async () => {
  const comments: Comment[] = [];
  const github = await startGitHub(comments);
  try {
    expect((await runStep("deploy/base/c.yaml", { GITHUB_API_URL: github.url })).code).toBe(2);
    expect(comments[0]?.body).toContain("> [!CAUTION]");
    const { code, stdout } = await runStep("agent.yaml", { GITHUB_API_URL: github.url, TOKEN: "other" });
    expect([code, stdout]).toEqual([
      1,
      "::error::The plan could not be written as a comment: GitHub answered 403 to GET 7/comments?per_page=100&page=1; give the job the permission pull-requests: write\n",
    ]);
  } finally {
    github.close();
  }
});

it("no input of the action or of the example workflow becomes a part of a script, and every action is pinned by its commit", () => {
  const workflow = parse(readFileSync(join(ACTION, "workflow.yml"), "utf8"));
  const action = parse(readFileSync(join(ACTION, "action.yml"), "utf8"));
  const steps = [...workflow.jobs.plan.steps, ...action.runs.steps];
  expect(steps.flatMap(({ run }) => run ?? []).join("\n")).not.toContain("${{");
  const [ours, others] = [/^OWNER\/REPOSITORY\/infra\/github-action\/plan@COMMIT$/, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/];
  const uses = steps.flatMap((one) => one.uses ?? []);
  expect(uses).toHaveLength(3);
  expect(uses.filter((one) => !ours.test(one) && !others.test(one))).toEqual([]);
  expect(Object.keys(workflow.jobs.plan.steps.at(-1).with).filter((name) => !(name in action.inputs))).toEqual([]);
});

it("the kubeconfig step of the example workflow writes a file that only its user may read", async () => {
  const { steps } = parse(readFileSync(join(ACTION, "workflow.yml"), "utf8")).jobs.plan;
  const { run } = steps.find(({ name }: { readonly name?: string }) => name === "Write the kubeconfig");
  mkdirSync(file("runner"), { recursive: true });
  const env = { ...process.env, RUNNER_TEMP: file("runner"), KUBECONFIG_TEXT: "a: $(b) `c`\n" };
  await new Promise((done) => execFile("bash", ["-c", run], { env }, done));
  expect(readFileSync(file("runner/kubeconfig"), "utf8")).toBe("a: $(b) `c`\n");
  expect(statSync(file("runner/kubeconfig")).mode & 0o777).toBe(0o600);
});
