import { describe, expect, it } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { AGENT, container, errorsOf, other, sidecarSet } from "./fixture.ts";

describe("validation of an update:", () => {
  const two = sidecarSet({ containers: [AGENT, container({ name: "second" })] });
  const hot = sidecarSet({ containers: [container({ upgradeStrategy: { upgradeType: "HotUpgrade" } })] });
  const rows: readonly (readonly [string, SidecarSet, SidecarSet, readonly string[]])[] = [
    ["an update that removes a container is accepted", two, sidecarSet(), []],

    [
      "an update that adds a container is accepted if the replace annotation is NotUpgradable",
      sidecarSet(),
      sidecarSet(
        { containers: [AGENT, container({ name: "second" })] },
        { annotations: { "sidecarset.kruise.io/replace": "NotUpgradable" } },
      ),
      [],
    ],
    [
      "an update that changes the upgradeType of a container is refused",
      sidecarSet(),
      hot,
      ['spec.containers.upgradeStrategy.upgradeType: Invalid value: "agent": container agent upgradeType is immutable'],
    ],
    [
      "an update that sets the upgradeType of a container for the first time is accepted",
      sidecarSet({ containers: [container({ upgradeStrategy: {} })] }),
      hot,
      [],
    ],
  ];
  it.each(rows)("%s", (_sentence, older, newer, errors) => {
    expect(errorsOf(newer, {}, older)).toEqual(errors);
  });
});

describe("validation of a canary:", () => {
  const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "other" };
  const canary = sidecarSet({ updateStrategy: { type: "NotUpdate" } }, { annotations });

  it("a canary may have the same containers as its base", () => {
    expect(errorsOf(canary, { sidecarSets: [other()] })).toEqual([]);
  });

  it("a canary whose base does not exist is refused", () => {
    const text = 'fetch base sidecarSet[other] failed: sidecarsets.apps.kruise.io "other" not found';
    expect(errorsOf(canary)[0]).toContain(text);
  });

  it("an update that turns a SidecarSet into a canary is refused", () => {
    const errors = errorsOf(canary, { sidecarSets: [other()] }, sidecarSet());
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain("annotations[apps.kruise.io/sidecarset-base] is immutable");
  });
});
