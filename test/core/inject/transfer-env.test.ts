import { describe, expect, test } from "vitest";
import type { Container } from "../../../shared/api/kubernetes.ts";
import type { TransferEnvVar } from "../../../shared/api/sidecarset.ts";
import { transferredEnv } from "../../../shared/core/injection/transfer-env.ts";

const CONTAINERS: readonly Container[] = [
  {
    name: "main",
    env: [
      { name: "A", value: "1" },
      { name: "B", value: "2" },
      { name: "A", value: "last" },
    ],
  },
  { name: "second", env: [{ name: "A", value: "second" }] },
  { name: "undefined", env: [{ name: "A", value: "of the container called undefined" }] },
  { name: "", env: [{ name: "A", value: "nameless" }] },
];
const METADATA = { labels: { source: "second" }, annotations: { "example.com/Source": "main" } };

function fromField(fieldPath: string): TransferEnvVar {
  return { sourceContainerName: "main", sourceContainerNameFrom: { fieldRef: { fieldPath } }, envName: "A" };
}

describe("transferEnv", () => {
  const rows: readonly [sentence: string, transfer: TransferEnvVar, env: readonly string[]][] = [
    ["takes the last of a name", { sourceContainerName: "main", envName: "A" }, ["A=last"]],
    [
      "takes several by name, each once",
      { sourceContainerName: "main", envName: "B", envNames: ["B", "A", "C"] },
      ["A=last", "B=2"],
    ],
    ["takes the container that a label names", fromField("metadata.labels['source']"), ["A=second"]],
    [
      "takes the container that an annotation names",
      fromField("metadata.annotations['example.com/Source']"),
      ["A=last"],
    ],
    ["takes no name from a label that is missing", fromField("metadata.labels['none']"), ["A=nameless"]],
    ["takes no name from an annotation that is missing", fromField("metadata.annotations['none']"), ["A=nameless"]],
    ["takes no name where none is given", { envName: "A" }, ["A=nameless"]],
    ["skips a subscript of another field", fromField("metadata.others['source']"), []],
    ["skips an annotation's key that is none", fromField("metadata.annotations['a b']"), []],
    ["skips a field that is no label or annotation", fromField("metadata.name"), []],
    ["skips a key that is none", fromField("metadata.labels['a b']"), []],
    ["finds nothing in a container that is missing", { sourceContainerName: "none", envName: "A" }, []],
  ];
  test.each(["labels", "annotations"])("takes no name from a pod without %s", (field) => {
    const transferEnv = [fromField(`metadata.${field}['source']`)];
    const taken = transferredEnv({ name: "sidecar", transferEnv }, CONTAINERS, {});
    expect(taken.map(({ value }) => value)).toEqual(["nameless"]);
  });

  test.each(rows)("%s", (_, transfer, env) => {
    const taken = transferredEnv({ name: "sidecar", transferEnv: [transfer] }, CONTAINERS, METADATA);
    expect(taken.map(({ name, value }) => `${name}=${value}`)).toEqual(env);
  });
});
