import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { Refusal } from "../../../shared/core/admission/admission.ts";
import { initializeLaunchPriority } from "../../../shared/core/launch-priority/barriers.ts";

function pod(values: readonly (string | undefined)[], metadata: Pod["metadata"] = { name: "p" }): Pod {
  const containers = values.map((value, index) => ({
    name: `c${index}`,
    ...(value === undefined ? {} : { env: [{ name: "KRUISE_CONTAINER_PRIORITY", value }] }),
  }));
  return { ...(metadata ? { metadata } : {}), spec: { containers } };
}

/** Returns the key in the barrier ConfigMap that each container waits for. */
function keys(result: Pod): readonly (string | undefined)[] {
  return result.spec.containers.map(({ env }) => env?.at(-1)?.valueFrom?.configMapKeyRef?.key);
}

const ORDERED = { name: "p", annotations: { "apps.kruise.io/container-launch-priority": "Ordered" } };

describe("initializeLaunchPriority:", () => {
  const ordered: readonly [sentence: string, input: Pod, keys: readonly string[]][] = [
    [
      "each container waits for the priority in its KRUISE_CONTAINER_PRIORITY",
      pod(["2", undefined, "-1"]),
      ["p_2", "p_0", "p_-1"],
    ],
    [
      "with the launch priority Ordered, each container gets a lower priority than the one before it",
      pod([undefined, "7", undefined], ORDERED),
      ["p_0", "p_-1", "p_-2"],
    ],
    [
      "the largest 64-bit integer is accepted as a priority",
      pod(["9223372036854775807", "+9223372036854775806"]),
      ["p_9223372036854775807", "p_9223372036854775806"],
    ],
  ];
  test.each(ordered)("%s", (_, input, expected) => {
    expect(keys(initializeLaunchPriority(input, () => 0) as Pod)).toEqual(expected);
  });

  const untouched: readonly [sentence: string, input: Pod][] = [
    ["a pod with a single container is not changed", pod(["x"])],
    ["a pod whose containers have the same priority is not changed", pod(["3", "3"])],
    ["a pod whose containers have no priority is not changed", pod([undefined, undefined])],
    ["a pod without containers is not changed", {} as Pod],
  ];
  test.each(untouched)("%s", (_, input) => {
    expect(initializeLaunchPriority(input, () => 0)).toBe(input);
  });

  const refused: readonly [value: string, message: string][] = [
    ["1.5", 'strconv.Atoi: parsing "1.5": invalid syntax'],
    ["", 'strconv.Atoi: parsing "": invalid syntax'],
    ["9223372036854775808", 'strconv.Atoi: parsing "9223372036854775808": value out of range'],
  ];
  test.each(refused)("a pod with the priority %j is refused", (value, message) => {
    expect(initializeLaunchPriority(pod(["1", value]), () => 0)).toEqual(new Refusal(message));
  });

  test("a pod is refused if the first of two priorities of a container is not an integer", () => {
    const env = ["x", "2"].map((value) => ({ name: "KRUISE_CONTAINER_PRIORITY", value }));
    const given: Pod = { spec: { containers: [{ name: "a", env }, { name: "b" }] } };
    expect(initializeLaunchPriority(given, () => 0)).toEqual(new Refusal('strconv.Atoi: parsing "x": invalid syntax'));
  });

  test("the barrier of a pod without a name and a generateName is called -barrier", () => {
    const { spec } = pod(["1", "2"]);
    const [first] = (initializeLaunchPriority({ spec }, () => 0) as Pod).spec.containers;
    expect(first?.env?.at(-1)?.valueFrom?.configMapKeyRef?.name).toBe("-barrier");
  });

  test("a pod with a generateName gets a name that Kubernetes could generate, and its barrier has the same name", () => {
    const generateName = "x".repeat(70);
    const named = initializeLaunchPriority(pod(["1", "2"], { generateName }), () => 0.999) as Pod;
    expect(named.metadata?.name).toBe(`${"x".repeat(58)}99999`);
    expect(named.spec.containers[0]?.env?.at(-1)?.valueFrom?.configMapKeyRef?.name).toBe(
      `${named.metadata?.name}-barrier`,
    );
  });
});
