/** Tests answers to a list that are JSON and not a list: none of them counts as an empty list. */
import { afterEach, describe, expect, it } from "vitest";
import { isResizeServed } from "../../shared/controller/rollout/kubelets.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { PODS } from "../../shared/kube/port.ts";
import { answer, closeServers, failureOf, serve } from "./servers.ts";

afterEach(closeServers);

const metadata = { resourceVersion: "1" };
const clientOf = async (body: unknown) =>
  connectCluster({ server: await serve((_, response) => answer(response, 200, JSON.stringify(body))) });

describe.each([
  ["item by item", { keep: () => "kept" }],
  ["at once", {}],
])("a list that is read %s", (_, options) => {
  it.each([
    ["items are null", { metadata, items: null }, `has "items": null`],
    ["items are missing", { metadata }, "has no list of objects"],
    ["items are an object", { metadata, items: {} }, "has no list of objects"],
    ["metadata are missing", { items: [] }, "has no list of objects"],
    ["answer is null", null, "has no list of objects"],
    ["answer is a text", "ok", "has no list of objects"],
  ])("reading a list whose %s is an error that names the list", async (...[, body, problem]) => {
    const error = await failureOf((await clientOf(body)).list(PODS, { namespace: "shop", ...options }));
    expect(error).toMatchObject({ reason: "UnreadableAnswer" });
    expect(error.message).toMatch(/^GET \/api\/v1\/namespaces\/shop\/pods: the answer of http:\S+ has /);
    expect(error.message).toContain(problem);
    expect(error.message).toContain("Ask who runs the API server");
  });
});

it("reading a list at once is an error if one of its items is null", async () => {
  const cluster = await clientOf({ metadata, items: [{}, null] });
  expect((await failureOf(cluster.list(PODS))).message).toContain("has no list of objects");
});

it("a list without items is read as empty", async () => {
  expect((await (await clientOf({ metadata, items: [] })).list(PODS)).items).toEqual([]);
});

it("a discovery document whose resources are null serves no resize", async () => {
  expect(await isResizeServed(await clientOf({ resources: null }))).toBe(false);
});
