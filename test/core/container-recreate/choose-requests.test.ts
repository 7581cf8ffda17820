import { describe, expect, test } from "vitest";
import type { ContainerRecreateRequest } from "../../../shared/api/container-recreate-request.ts";
import { chooseRequests } from "../../../shared/core/container-recreate/track-request.ts";

const CREATED = "2025-06-01T00:00:00Z";
const NOW = "2025-06-01T00:01:00Z";

interface Given {
  readonly namespace?: string;
  /** value of the annotation; null: there is none */
  readonly limit?: string | null;
  /** the pod's batch; null: the pod belongs to none */
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

describe("chooseRequests:", () => {
  const rows: readonly [sentence: string, given: readonly ContainerRecreateRequest[], expected: readonly string[]][] = [
    [
      "one request of a batch without a limit",
      [requestOf("a", { limit: null }), requestOf("b", { limit: null })],
      ["ns/a"],
    ],
    [
      "one request if the limit only ends in a number",
      [requestOf("a", { limit: "x2" }), requestOf("b", { limit: "x2" })],
      ["ns/a"],
    ],
    [
      "as many requests as a limit of two digits allows",
      many.map((name) => requestOf(name, { limit: "12" })),
      many.slice(0, 12).map((name) => `ns/${name}`),
    ],
    [
      "one request in each namespace, because a batch is within a namespace",
      [requestOf("a"), requestOf("b", { namespace: "other" })],
      ["ns/a", "other/b"],
    ],
    ["one request of each batch", [requestOf("a"), requestOf("b", { batch: "c" })], ["ns/a", "ns/b"]],

    ["a request without a batch even if its limit is 0", [requestOf("a", { batch: null, limit: "0" })], ["ns/a"]],
    [
      "a running request even if it was created just now",
      [requestOf("a", { status: RECREATING, created: NOW })],
      ["ns/a"],
    ],
    ["a running request before an older one", [requestOf("z", { status: RECREATING }), requestOf("a")], ["ns/z"]],
    ["the older request first", [requestOf("a", { created: "2025-06-01T00:00:10Z" }), requestOf("b")], ["ns/b"]],
    ["a request that was created two seconds ago", [requestOf("a", { created: "2025-06-01T00:00:58Z" })], ["ns/a"]],
    ["no request that was created one second ago", [requestOf("a", { created: "2025-06-01T00:00:59Z" })], []],
    [
      "the next request after the first has succeeded",
      [requestOf("a", { status: over("Succeeded", true) }), requestOf("b")],
      ["ns/b"],
    ],

    [
      "no request after one whose container did not come back",
      [requestOf("a", { status: over("Recreating", true) }), requestOf("b")],
      [],
    ],
  ];
  test.each(rows)("chooseRequests chooses %s", (_, given, expected) => {
    expect(chosen(given)).toEqual(expected);
    expect(chosen([...given].reverse())).toEqual(expected);
  });

  test("requests without metadata are chosen one at a time", () => {
    const wish = { spec: { podName: "p", containers: [{ name: "a" }] } };
    expect(chooseRequests([wish], NOW)).toEqual({ chosen: [wish], waiting: [] });
    const { chosen: first, waiting } = chooseRequests([wish, { ...wish, metadata: {} }], NOW);
    expect(first).toEqual([wish]);
    expect(waiting).toMatchObject([{ why: "waits for another request for the same pod" }]);
  });
});

describe("the waiting requests of chooseRequests:", () => {
  const said = (requests: readonly ContainerRecreateRequest[], now = NOW) =>
    chooseRequests(requests, now).waiting.map(({ request, why, isBrief }) => [request.metadata?.name, why, isBrief]);

  test("a request says that it waits for its turn in the batch", () => {
    expect(said([requestOf("a"), requestOf("b")])).toEqual([
      ["b", "waits for its turn in batch ns/b: at most 1 at once, 1 under way or not back", false],
    ]);
  });

  test("a request says that it waits for a moment until the batch is complete", () => {
    expect(said([requestOf("a")], CREATED)).toEqual([["a", "waits for the rest of batch ns/b to be made", true]]);
  });

  test("a request says that it waits for another request for the same pod", () => {
    const twin = { ...requestOf("b", { batch: null }), metadata: { ...requestOf("a").metadata, name: "b" } };
    expect(said([requestOf("a", { batch: null }), twin])).toEqual([
      ["b", "waits for another request for the same pod", false],
    ]);
  });
});

test("the first 200 chosen requests include another namespace, even if one namespace has 200 endless requests", () => {
  const batch = null;
  const greedy = Array.from({ length: 200 }, (_, nth) =>
    requestOf(`g${nth}`, { namespace: "greedy", batch, status: RECREATING, created: "2025-05-01T00:00:00Z" }),
  );
  const modest = many.map((name) => requestOf(name, { namespace: "modest", batch }));
  const first = chosen([...greedy, ...modest]).slice(0, 200);
  expect(first.filter((name) => name.startsWith("modest/"))).toHaveLength(many.length);
});

test("a request that carries the uid of a pod in another namespace does not keep that pod's own request waiting", () => {
  const forged = requestOf("a", { namespace: "greedy", batch: null, created: "2025-05-01T00:00:00Z" });
  const own = requestOf("a", { namespace: "modest", batch: null });
  const labels = { ...forged.metadata?.labels, ...own.metadata?.labels };
  expect(chosen([{ ...forged, metadata: { ...forged.metadata, labels } }, own])).toContain("modest/a");
});
