/** Tests the answers of the command line to unknown commands. */
import { expect, it } from "vitest";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { familiarWords } from "../../functions/cli/program.ts";
import { runHere } from "./run-cli.ts";

/** Rows: the typed words, and the command that the answer names. */
const TYPED: readonly (readonly [typed: string, command: string])[] = [
  ["rollout status web", "status"],
  ["rollout history web", "history"],
  ["rollout undo web", "undo"],
  ["rollout pause web", "pause"],
  ["rollout resume web", "resume"],
  ["rollout restart deployment/web", "explain"],
  ["rollout", "status"],
  ["rollback web", "undo"],
  ["revert web", "undo"],
  ["describe web", "explain"],
  ["describe pod web-1", "explain"],
  ["why web", "explain"],
  ["events web", "explain"],
  ["list", "status"],
  ["ls", "status"],
  ["get sidecarsets", "status"],
  ["get pods", "pods"],
  ["show web", "status"],
  ["sidecarset web", "status"],
  ["sidecarsets", "status"],
  ["watch web", "status"],
  ["wait web", "status"],
  ["logs web-1", "kubectl logs"],
  ["log web-1", "kubectl logs"],
  ["delete web", "kubectl delete"],
  ["remove web", "kubectl delete"],
  ["rm web", "kubectl delete"],
  ["apply -f web.yaml", "kubectl apply"],
  ["create -f web.yaml", "kubectl apply"],
  ["edit web", "kubectl apply"],
  ["patch web -p {}", "kubectl apply"],
  ["replace -f web.yaml", "kubectl apply"],
  ["restart web", "explain"],
  ["recreate web", "explain"],
  ["stop web", "pause"],
  ["halt web", "pause"],
  ["freeze web", "pause"],
  ["start web", "resume"],
  ["unpause web", "resume"],
  ["continue web", "resume"],
  ["next web", "promote"],
  ["cancel web", "abort"],
  ["upgrade web", "set image"],
  ["update web", "set image"],
  ["image web a=b", "set image"],
  ["scale web", "set max-unavailable"],
  ["validate web.yaml", "lint"],
  ["verify web.yaml", "lint"],
  ["test", "lint"],
  ["doctor", "check"],
  ["health", "check"],
  ["diagnose", "check"],
  ["dry-run web", "plan"],
  ["simulate web", "plan"],
  ["inject -f web.yaml", "preview"],
  ["render -f web.yaml", "preview"],
  ["template web", "preview"],
  ["pod/web-1", "explain pod/web-1"],
  ["deployment/web", "explain deployment/web"],
  ["web-7d44b88555-abcde", "explain pod/web-7d44b88555-abcde"],
  ["set img web a=b", "set image"],
  ["statsu", "status"],
  ["expalin web", "explain"],
  ["pasue web", "pause"],
  ["prompote web", "promote"],
];

it.each(TYPED)("`sidecarset %s` fails with one line that suggests the command %s", async (typed, command) => {
  const { code, stdout, stderr } = await runHere(typed.split(" "));
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.split("\n")).toHaveLength(2);
  expect(stderr).toMatch(/: no such command[,;:] /);
  expect(stderr).toContain(command);
});

it("every command that the answer to a familiar word suggests exists", () => {
  const named = TYPED.flatMap(
    ([typed]) =>
      familiarWords(typed.split(" "))
        ?.split("`")
        .filter((_, index) => index % 2 === 1) ?? [],
  );
  const own = named.filter((text) => !text.startsWith("kubectl "));
  const names = COMMANDS.map(({ name }) => name);
  expect(own.length).toBeGreaterThan(40);
  expect(own.filter((text) => !names.some((name) => text === name || text.startsWith(`${name} `)))).toEqual([]);
});

it.each([
  ["help", /^Usage: sidecarset COMMAND/],
  ["help diff", /^Usage: sidecarset diff /],
  ["help set image", /^Usage: sidecarset set image /],
])("`sidecarset %s` prints help", async (typed, expected) => {
  expect(await runHere(typed.split(" "))).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(expected),
    stderr: "",
  });
});

it.each(["help nope", "--nope", "nope", "toString", "constructor"])(
  "`sidecarset %s` exits with 2 and says that there is no such command or option",
  async (typed) => {
    expect(await runHere(typed.split(" "))).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("no such"),
    });
  },
);
