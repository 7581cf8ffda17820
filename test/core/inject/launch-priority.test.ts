import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { Refusal } from "../../../shared/core/admission/refusal.ts";
import { initializeLaunchPriority } from "../../../shared/core/launch-priority/barriers.ts";

function pod(values: readonly (string | undefined)[], metadata: Pod["metadata"] = { name: "p" }): Pod {
  const containers = values.map((value, index) => ({
    name: `c${index}`,
    ...(value === undefined ? {} : { env: [{ name: "KRUISE_CONTAINER_PRIORITY", value }] }),
  }));
  return { ...(metadata ? { metadata } : {}), spec: { containers } };
}

/** key of each container's barrier */
function keys(result: Pod): readonly (string | undefined)[] {
  return result.spec.containers.map(({ env }) => env?.at(-1)?.valueFrom?.configMapKeyRef?.key);
}

const ORDERED = { name: "p", annotations: { "apps.kruise.io/container-launch-priority": "Ordered" } };

describe("the launch priority of containers", () => {
  const ordered: readonly [sentence: string, input: Pod, keys: readonly string[]][] = [
    ["is what they ask for", pod(["2", undefined, "-1"]), ["p_2", "p_0", "p_-1"]],
    ["is their order where the pod says so", pod([undefined, "7", undefined], ORDERED), ["p_0", "p_-1", "p_-2"]],
    [
      "is 64 bits wide",
      pod(["9223372036854775807", "+9223372036854775806"]),
      ["p_9223372036854775807", "p_9223372036854775806"],
    ],
  ];
  test.each(ordered)("%s", (_, input, expected) => {
    expect(keys(initializeLaunchPriority(input, () => 0) as Pod)).toEqual(expected);
  });

  const untouched: readonly [sentence: string, input: Pod][] = [
    ["of a single container means nothing", pod(["x"])],
    ["that is the same everywhere means nothing", pod(["3", "3"])],
    ["that nobody asks for means nothing", pod([undefined, undefined])],
    ["of no container means nothing", {} as Pod],
  ];
  test.each(untouched)("%s", (_, input) => {
    expect(initializeLaunchPriority(input, () => 0)).toBe(input);
  });

  const refused: readonly [value: string, message: string][] = [
    ["1.5", 'strconv.Atoi: parsing "1.5": invalid syntax'],
    ["", 'strconv.Atoi: parsing "": invalid syntax'],
    ["9223372036854775808", 'strconv.Atoi: parsing "9223372036854775808": value out of range'],
  ];
  test.each(refused)("refuses %j", (value, message) => {
    expect(initializeLaunchPriority(pod(["1", value]), () => 0)).toEqual(new Refusal(message));
  });

  test("is refused for the first of several that is no integer", () => {
    const env = ["x", "2"].map((value) => ({ name: "KRUISE_CONTAINER_PRIORITY", value }));
    const given: Pod = { spec: { containers: [{ name: "a", env }, { name: "b" }] } };
    expect(initializeLaunchPriority(given, () => 0)).toEqual(new Refusal('strconv.Atoi: parsing "x": invalid syntax'));
  });

  test("waits for the barrier of no pod where neither a name nor generateName is given", () => {
    const { spec } = pod(["1", "2"]);
    const [first] = (initializeLaunchPriority({ spec }, () => 0) as Pod).spec.containers;
    expect(first?.env?.at(-1)?.valueFrom?.configMapKeyRef?.name).toBe("-barrier");
  });

  test("needs a name, and takes one that Kubernetes could have generated", () => {
    const generateName = "x".repeat(70);
    const named = initializeLaunchPriority(pod(["1", "2"], { generateName }), () => 0.999) as Pod;
    expect(named.metadata?.name).toBe(`${"x".repeat(58)}99999`);
    expect(named.spec.containers[0]?.env?.at(-1)?.valueFrom?.configMapKeyRef?.name).toBe(
      `${named.metadata?.name}-barrier`,
    );
  });
});
