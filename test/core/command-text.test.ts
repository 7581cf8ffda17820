/** Tests which names are safe in a command that a person copies into a shell. */
import { describe, expect, it } from "vitest";
import { commandText, NO_COMMAND } from "../../shared/core/pod/command-text.ts";

describe("commandText:", () => {
  it.each(["web", "a.b-c.d", "deployment/web", "cloneset.apps.kruise.io/web", "x".repeat(253)])(
    "a command contains the valid name %s",
    (name) => {
      expect(commandText`kubectl get ${name}`).toBe(`kubectl get ${name}`);
    },
  );

  it("a command contains several names and a number", () => {
    expect(commandText`kubectl delete pod ${["a", "b"]} --grace-period=${5}`).toBe(
      "kubectl delete pod a b --grace-period=5",
    );
  });

  it.each([
    "web; touch PWNED #",
    "$(id)",
    "`id`",
    "a\nb",
    "a b",
    "'",
    "--all",
    "-n",
    "a/b/c",
    "a/",
    "",
    "A",
    "é",
    "x".repeat(254),
    undefined,
  ])("a text says that there is no command if a name is %j", (name) => {
    expect(commandText`kubectl get ${name}`).toBe(NO_COMMAND);
    expect(commandText`kubectl get ${["web", String(name ?? "")]}`).toBe(NO_COMMAND);
  });
});
