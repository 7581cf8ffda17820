import { describe, expect, it } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { AGENT, container, errorsOf, other, sidecarSet } from "./fixture.ts";

describe("a change", () => {
  const two = sidecarSet({ containers: [AGENT, container({ name: "second" })] });
  const hot = sidecarSet({ containers: [container({ upgradeStrategy: { upgradeType: "HotUpgrade" } })] });
  const rows: readonly (readonly [string, SidecarSet, SidecarSet, readonly string[]])[] = [
    ["may take a container away", two, sidecarSet(), []],
    [
      "may not add one",
      sidecarSet(),
      two,
      ['spec.containers.name: Invalid value: "second": container second is not found'],
    ],
    [
      "may add one where pods without it are replaced",
      sidecarSet(),
      sidecarSet(
        { containers: [AGENT, container({ name: "second" })] },
        { annotations: { "sidecarset.kruise.io/replace": "NotUpgradable" } },
      ),
      [],
    ],
    ["may add an init container", sidecarSet(), sidecarSet({ initContainers: [container({ name: "i" })] }), []],
    [
      "may not change how a container is upgraded",
      sidecarSet(),
      hot,
      ['spec.containers.upgradeStrategy.upgradeType: Invalid value: "agent": container agent upgradeType is immutable'],
    ],
    [
      "may say how a container is upgraded where that was open",
      sidecarSet({ containers: [container({ upgradeStrategy: {} })] }),
      hot,
      [],
    ],
  ];
  it.each(rows)("%s", (_sentence, older, newer, errors) => {
    expect(errorsOf(newer, {}, older)).toEqual(errors);
  });
});

describe("a canary", () => {
  const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "other" };
  const canary = sidecarSet({ updateStrategy: { type: "NotUpdate" } }, { annotations });

  it("may share containers with its base", () => {
    expect(errorsOf(canary, { sidecarSets: [other()] })).toEqual([]);
  });

  it("needs its base", () => {
    const text = 'fetch base sidecarSet[other] failed: sidecarsets.apps.kruise.io "other" not found';
    expect(errorsOf(canary)[0]).toContain(text);
  });

  it("cannot be the canary of a canary", () => {
    const base = sidecarSet({}, { name: "other", annotations });
    expect(errorsOf(canary, { sidecarSets: [base] })[0]).toContain("base sidecarSet cannot be canary");
  });

  it("is never rolled out", () => {
    const rolled = sidecarSet({}, { annotations });
    expect(errorsOf(rolled, { sidecarSets: [other()] })[0]).toContain("RollingUpdate is not supported for canary");
  });

  it("keeps its base", () => {
    const errors = errorsOf(canary, { sidecarSets: [other()] }, sidecarSet());
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain("annotations[apps.kruise.io/sidecarset-base] is immutable");
  });
});
