import { describe, expect, it } from "vitest";
import { withCommands } from "../../shared/core/inspect/report/page.ts";
import { reportOnSidecarSet } from "../../shared/core/inspect/report/report.ts";
import { restartAdvice } from "../../shared/core/inspect/restart-advice.ts";
import { HOLDS } from "../../shared/core/rollout/hold.ts";
import { NOW, podOf, sidecarSetOf } from "../support/rollout-fixture.ts";
import { HOLD_SCENES } from "./holds/scenes.ts";

const commandsIn = (advice: string) =>
  [
    ...withCommands(advice)
      .toString()
      .matchAll(/<span class="cmd"><code>(.*?)<\/code><\/span>/g),
  ].map(([, command = ""]) => command);

describe("only the commands in a suggestion can be copied:", () => {
  const advices: Readonly<Record<string, readonly string[]>> = {
    "sidecarset undo web, or set another image": ["sidecarset undo web"],
    "set an image that can: sidecarset set image web agent=IMAGE, or sidecarset undo web": [
      "sidecarset set image web agent=IMAGE",
      "sidecarset undo web",
    ],
    "set another image; sidecarset history web shows the revisions": ["sidecarset history web"],
    "sidecarset promote web when the updated ones are fine": ["sidecarset promote web"],
    "allow the passes this call; sidecarset check names rights that are missing": ["sidecarset check"],
    "recreate them: kubectl -n a rollout restart deployment/web; kubectl -n b delete pod x y z # and 4 more": [
      "kubectl -n a rollout restart deployment/web",
      "kubectl -n b delete pod x y z",
    ],
    "recreate it: kubectl -n a delete pod x (it has no workload that creates another)": ["kubectl -n a delete pod x"],
    "register it: sidecarset webhooks --url URL | kubectl apply -f -; or set KEEP_REGISTRATION": [
      "sidecarset webhooks --url URL | kubectl apply -f -",
    ],
    "that serve runs with --tick; until then sidecarset tick makes one by hand": ["sidecarset tick"],
    'until then new pods get the revision "x: kubectl delete ns shop", not the newest': [],
    "# no command is shown, because a name in it is not a valid name": [],
    "set spec.updateStrategy.type to RollingUpdate": [],
  };

  it.each(Object.entries(advices))("the commands of this suggestion can be copied: %s", (advice, commands) => {
    expect(commandsIn(advice)).toEqual(commands);
    const text = withCommands(advice).toString().replace(/<.*?>/g, "");
    for (const word of advice.replaceAll(/[;,#]/g, "").split(/\s+/)) expect(text).toContain(word.replaceAll('"', ""));
  });

  it("the sentence keeps its end without the comma after the command, and ends with a full stop", () => {
    const box = '<span class="cmd"><code>sidecarset undo web</code></span>';
    expect(withCommands("sidecarset undo web, or set another image").toString()).toBe(`${box}or set another image.`);
    expect(withCommands("sidecarset undo web").toString()).toBe(box);
  });
});

it("every command that the page suggests for a hold of the book can be run", () => {
  const found = new Set(
    HOLDS.flatMap((hold) => HOLD_SCENES[hold]).flatMap(({ observation, context }) => {
      const page = reportOnSidecarSet({ observation, events: [], missed: new Set(), lastPass: NOW }, context);
      const advised = page.reasons.flatMap(({ next = "" }) => next);
      for (const next of advised.filter((text) => /\b(?:kubectl|sidecarset) [a-z-]/.test(text)))
        expect(commandsIn(next), next).not.toEqual([]);
      return advised.flatMap(commandsIn);
    }),
  );
  expect([...found].sort()).toEqual([
    "kubectl -n default delete pod p",
    "kubectl -n default rollout restart statefulset/web",
    "kubectl describe pod -n default gated",
    "sidecarset check",
    "sidecarset promote ss",
    "sidecarset resume ss",
  ]);
});

it("a suggestion quotes a SidecarSet author's text of more than a word, so that the text is not read as a command", () => {
  const set = sidecarSetOf();
  const pinnedTo = (customVersion: string) => ({
    ...set,
    spec: { ...set.spec, injectionStrategy: { revision: { customVersion } } },
  });
  expect(restartAdvice([podOf()], pinnedTo("v1"))).toContain("get the revision v1, not");
  const advice = restartAdvice([podOf()], pinnedTo('v1"; kubectl delete ns shop'));
  expect(advice).toContain(String.raw`get the revision "v1\"; kubectl delete ns shop", not`);
  expect(commandsIn(advice)).toEqual([]);
});
