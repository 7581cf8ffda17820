import { describe, expect, test } from "vitest";
import type { PodSpec, ResourceRequirements } from "../../../shared/api/kubernetes.ts";
import type { ResourcesPolicy } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/admission.ts";
import { resourcesByPolicy } from "../../../shared/core/injection/resources-policy.ts";

const SPEC: PodSpec = {
  initContainers: [
    { name: "native", restartPolicy: "Always", resources: { requests: { cpu: "100m" }, limits: { cpu: "1" } } },
    { name: "plain", resources: { requests: { cpu: "64" } } },
  ],
  containers: [
    { name: "app", resources: { requests: { cpu: "300m", memory: "1Gi" }, limits: { cpu: "2", memory: "2Gi" } } },
    { name: "log", resources: { requests: { cpu: "32" } } },
  ],
};

function policy(targetContainersMode: string, resourcesExpr: ResourcesPolicy["resourcesExpr"], regex = ".*") {
  return { targetContainersMode, resourcesExpr, targetContainersNameRegex: regex };
}

describe("resourcesByPolicy:", () => {
  const rows: readonly [sentence: string, policy: ResourcesPolicy, resources: ResourceRequirements][] = [
    [
      "the mode sum adds up native sidecars and containers, but not sidecars of SidecarSets",
      policy("sum", { requests: { cpu: "cpu*50%", memory: "memory" }, limits: { cpu: "cpu" } }),
      { requests: { cpu: "200m", memory: "1Gi" }, limits: { cpu: "3" } },
    ],
    [
      "the mode max takes the largest value",
      policy("max", { requests: { cpu: "cpu" } }),
      { requests: { cpu: "300m" } },
    ],
    ["no limit is set if one target container has no limit", policy("sum", { limits: { memory: "memory" } }), {}],
    [
      "a missing request counts as 0",
      policy("max", { requests: { memory: "memory" } }, "native"),
      { requests: { memory: "0" } },
    ],
    [
      "an unknown mode sets no limit, and its requests start from 0",
      policy("avg", { limits: { cpu: "cpu" }, requests: { cpu: "cpu + 5m" } }),
      { requests: { cpu: "5m" } },
    ],
    [
      "a policy without expressions sets no resources",
      { targetContainersMode: "sum", targetContainersNameRegex: "app" } as ResourcesPolicy,
      {},
    ],
    [
      "an expression that is a plain number keeps thousandths for cpu and for memory",
      policy("sum", { requests: { cpu: "1.5", memory: "1.5" } }),
      { requests: { cpu: "1500m", memory: "1500m" } },
    ],
    [
      "an expression with the word memory loses the fraction of its result",
      policy("sum", { requests: { cpu: "max(1.5,0%memory)" } }),
      { requests: { cpu: "1" } },
    ],
  ];
  test.each(rows)("%s", (_, given, resources) => {
    expect(resourcesByPolicy(given, SPEC, new Set(["log"]))).toEqual(resources);
  });

  test("of equal largest values, the mode max keeps the notation of the first", () => {
    const memory = (name: string, value: string) => ({ name, resources: { requests: { memory: value } } });
    const spec: PodSpec = { containers: [memory("a", "1Gi"), memory("b", "1073741824")] };
    const given = policy("max", { requests: { memory: "memory" } });
    expect(resourcesByPolicy(given, spec, new Set())).toEqual({ requests: { memory: "1Gi" } });
  });

  const refused: readonly [sentence: string, policy: ResourcesPolicy, message: string][] = [
    [
      "the pattern ^log$ matches only a sidecar of a SidecarSet",
      policy("sum", {}, "^log$"),
      'no containers match the regex pattern "^log$"',
    ],
    [
      "the result of an expression is below 0",
      policy("sum", { limits: { cpu: "cpu - 9" } }, "app"),
      'failed to evaluate CPU limits expression: failed to parse expression "cpu - 9": calculation result is negative: -7',
    ],
    [
      "no container matches the pattern, and the message quotes the pattern like Go",
      policy("sum", {}, "^\\w{9}$"),
      'no containers match the regex pattern "^\\\\w{9}$"',
    ],
    [
      "the pattern is malformed",
      policy("sum", {}, '"\\8'),
      'failed to get target containers: invalid regex pattern "\\"\\\\8": error parsing regexp: invalid escape sequence: `\\8`',
    ],
    [
      "the expression for cpu requests divides by zero",
      policy("sum", { requests: { cpu: "1/0\n" } }),
      'failed to evaluate CPU requests expression: failed to parse expression "1/0\\n": division by zero',
    ],
    [
      "an expression has MEMORY in capitals",
      policy("sum", { requests: { memory: "MEMORY" } }),
      'failed to evaluate memory requests expression: failed to parse expression "MEMORY": undefined variable: memory',
    ],
    [
      "the expression for memory requests divides by zero",
      policy("sum", { requests: { memory: "memory/0" } }),
      'failed to evaluate memory requests expression: failed to parse expression "memory/0": division by zero',
    ],
  ];
  test.each(refused)("the pod is refused if %s", (_, given, message) => {
    expect(resourcesByPolicy(given, SPEC, new Set(["log"]))).toEqual(new Refusal(message));
  });
});

test("a container name of more than 63 characters matches no pattern of a resourcesPolicy", () => {
  const named = (length: number) => ({ containers: [{ ...SPEC.containers[0], name: "a".repeat(length) }] });
  const given = policy("sum", { requests: { cpu: "cpu" } });
  expect(resourcesByPolicy(given, named(63), new Set())).toEqual({ requests: { cpu: "300m" } });
  expect(resourcesByPolicy(given, named(64), new Set())).toBeInstanceOf(Refusal);
});
