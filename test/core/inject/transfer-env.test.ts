import { describe, expect, test } from "vitest";
import type { Container } from "../../../shared/api/kubernetes.ts";
import type { TransferEnvVar } from "../../../shared/api/sidecarset.ts";
import { transferredEnv } from "../../../shared/core/injection/share-with-app.ts";

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

describe("transferredEnv:", () => {
  const rows: readonly [sentence: string, transfer: TransferEnvVar, env: readonly string[]][] = [
    ["transferEnv copies the last variable of a name", { sourceContainerName: "main", envName: "A" }, ["A=last"]],
    [
      "transferEnv copies each named variable once, sorted by name",
      { sourceContainerName: "main", envName: "B", envNames: ["B", "A", "C"] },
      ["A=last", "B=2"],
    ],
    ["transferEnv copies from the container that a label names", fromField("metadata.labels['source']"), ["A=second"]],
    [
      "transferEnv copies from the container that an annotation names",
      fromField("metadata.annotations['example.com/Source']"),
      ["A=last"],
    ],

    [
      "transferEnv copies from the container with the empty name if it names no source",
      { envName: "A" },
      ["A=nameless"],
    ],
    ["transferEnv copies nothing by a key of an unsupported field", fromField("metadata.others['source']"), []],
    ["transferEnv copies nothing by an invalid annotation key", fromField("metadata.annotations['a b']"), []],
    ["transferEnv copies nothing by the field metadata.name", fromField("metadata.name"), []],
    ["transferEnv copies nothing by an invalid label key", fromField("metadata.labels['a b']"), []],
  ];
  test.each(["labels", "annotations"])(
    "transferEnv copies from the container with the empty name if the pod has no %s",
    (field) => {
      const transferEnv = [fromField(`metadata.${field}['source']`)];
      const taken = transferredEnv({ name: "sidecar", transferEnv }, CONTAINERS, {});
      expect(taken.map(({ value }) => value)).toEqual(["nameless"]);
    },
  );

  test.each(rows)("%s", (_, transfer, env) => {
    const taken = transferredEnv({ name: "sidecar", transferEnv: [transfer] }, CONTAINERS, METADATA);
    expect(taken.map(({ name, value }) => `${name}=${value}`)).toEqual(env);
  });
});
