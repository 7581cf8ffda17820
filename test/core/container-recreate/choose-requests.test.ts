import { describe, expect, test } from "vitest";
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import { chooseRequests } from "../../../shared/core/container-recreate/choose-requests.ts";

const CREATED = "2025-06-01T00:00:00Z";
const NOW = "2025-06-01T00:01:00Z";

interface Given {
  readonly namespace?: string;
  /** null: no annotation */
  readonly limit?: string | null;
  /** null: of no batch */
  readonly batch?: string | null;
  readonly created?: string;
  readonly status?: ContainerRecreateRequest["status"];
}

function requestOf(name: string, given: Given = {}): ContainerRecreateRequest {
  const { namespace = "ns", limit = "1", batch = "b", created = CREATED, status } = given;
  const labels = {
    "crr.apps.kruise.io/pod-uid": `${namespace}-${name}`,
    ...(batch === null ? {} : { "crr.sidecarset.kruise.io/batch": batch }),
  };
  const annotations = limit === null ? {} : { annotations: { "crr.sidecarset.kruise.io/max-unavailable": limit } };
  return {
    metadata: { name, namespace, creationTimestamp: created, labels, ...annotations },
    spec: { podName: name, containers: [{ name: "a" }] },
    ...(status ? { status } : {}),
  };
}

function chosen(requests: readonly ContainerRecreateRequest[], now = NOW): readonly string[] {
  return chooseRequests(requests, now).chosen.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
}

const RECREATING = { phase: "Recreating" } as const;
const over = (phase: "Recreating" | "Succeeded", isKilled: boolean) =>
  ({
    phase: "Completed",
    completionTime: NOW,
    containerRecreateStates: [{ name: "a", phase, ...(isKilled ? { isKilled } : {}) }],
  }) as const;
const many = Array.from({ length: 13 }, (_, index) => `r${String(index).padStart(2, "0")}`);

describe("chosen is", () => {
  const rows: readonly [sentence: string, given: readonly ContainerRecreateRequest[], expected: readonly string[]][] = [
    ["one of a batch without a limit", [requestOf("a", { limit: null }), requestOf("b", { limit: null })], ["ns/a"]],
    [
      "one by a limit that only ends in a number",
      [requestOf("a", { limit: "x2" }), requestOf("b", { limit: "x2" })],
      ["ns/a"],
    ],
    [
      "as many as a limit of two digits says",
      many.map((name) => requestOf(name, { limit: "12" })),
      many.slice(0, 12).map((name) => `ns/${name}`),
    ],
    [
      "one in each namespace: batches do not reach beyond",
      [requestOf("a"), requestOf("b", { namespace: "other" })],
      ["ns/a", "other/b"],
    ],
    ["one of each batch", [requestOf("a"), requestOf("b", { batch: "c" })], ["ns/a", "ns/b"]],
    [
      "what is of no batch, at once",
      [requestOf("a", { batch: null, created: NOW }), requestOf("b", { batch: null, created: NOW })],
      ["ns/a", "ns/b"],
    ],
    ["what is of no batch, whatever its limit says", [requestOf("a", { batch: null, limit: "0" })], ["ns/a"]],
    [
      "what is under way, although it was made just now",
      [requestOf("a", { status: RECREATING, created: NOW })],
      ["ns/a"],
    ],
    ["what is under way before what is older", [requestOf("z", { status: RECREATING }), requestOf("a")], ["ns/z"]],
    ["the older one", [requestOf("a", { created: "2025-06-01T00:00:10Z" }), requestOf("b")], ["ns/b"]],
    ["what was made two seconds ago", [requestOf("a", { created: "2025-06-01T00:00:58Z" })], ["ns/a"]],
    ["nothing that was made a second ago", [requestOf("a", { created: "2025-06-01T00:00:59Z" })], []],
    [
      "the next one once the first has succeeded",
      [requestOf("a", { status: over("Succeeded", true) }), requestOf("b")],
      ["ns/b"],
    ],
    [
      "the next one when the first was never stopped",
      [requestOf("a", { status: over("Recreating", false) }), requestOf("b")],
      ["ns/b"],
    ],
    [
      "none after one that did not come back",
      [requestOf("a", { status: over("Recreating", true) }), requestOf("b")],
      [],
    ],
    [
      "nothing that is being deleted",
      [{ ...requestOf("a"), metadata: { ...requestOf("a").metadata, deletionTimestamp: NOW } }],
      [],
    ],
  ];
  test.each(rows)("%s", (_, given, expected) => {
    expect(chosen(given)).toEqual(expected);
    expect(chosen([...given].reverse())).toEqual(expected);
  });

  test("what has nothing but a wish, one at a time", () => {
    const wish = { spec: { podName: "p", containers: [{ name: "a" }] } };
    expect(chooseRequests([wish], NOW)).toEqual({ chosen: [wish], waiting: [] });
    const { chosen: first, waiting } = chooseRequests([wish, { ...wish, metadata: {} }], NOW);
    expect(first).toEqual([wish]);
    expect(waiting).toMatchObject([{ why: "waits for another request for the same pod" }]);
  });
});

describe("those that wait say for what", () => {
  const said = (requests: readonly ContainerRecreateRequest[], now = NOW) =>
    chooseRequests(requests, now).waiting.map(({ request, why, isBrief }) => [request.metadata?.name, why, isBrief]);

  test("for their turn", () => {
    expect(said([requestOf("a"), requestOf("b")])).toEqual([
      ["b", "waits for its turn in batch ns/b: at most 1 at once, 1 under way or not back", false],
    ]);
  });

  test("for the rest, for a moment", () => {
    expect(said([requestOf("a")], CREATED)).toEqual([["a", "waits for the rest of batch ns/b to be made", true]]);
  });

  test("for another request", () => {
    const twin = { ...requestOf("b", { batch: null }), metadata: { ...requestOf("a").metadata, name: "b" } };
    expect(said([requestOf("a", { batch: null }), twin])).toEqual([
      ["b", "waits for another request for the same pod", false],
    ]);
  });
});

test("a namespace whose two hundred requests never end leaves the others their places among the first two hundred", () => {
  const batch = null;
  const greedy = Array.from({ length: 200 }, (_, nth) =>
    requestOf(`g${nth}`, { namespace: "greedy", batch, status: RECREATING, created: "2025-05-01T00:00:00Z" }),
  );
  const modest = many.map((name) => requestOf(name, { namespace: "modest", batch }));
  const first = chosen([...greedy, ...modest]).slice(0, 200);
  expect(first.filter((name) => name.startsWith("modest/"))).toHaveLength(many.length);
});
