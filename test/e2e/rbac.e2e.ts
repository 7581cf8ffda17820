/** Tests the limits of the shipped service accounts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RawTarget, sendRaw } from "../contract/raw.ts";
import { apiServer } from "./support/access.ts";
import { asServiceAccount } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";

let functions: Functions;
const accounts = new Map<string, RawTarget>();
const WEBHOOKS = "sidecarset-webhooks";
const RECONCILER = "sidecarset-reconciler";

beforeAll(async () => {
  const admin = apiServer();
  functions = await startFunctions(admin);
  for (const name of [WEBHOOKS, RECONCILER]) accounts.set(name, await asServiceAccount(admin, "kruise-system", name));
});
afterAll(() => functions?.close());

const METHODS = { create: "POST", get: "GET", list: "GET", update: "PUT", patch: "PATCH", delete: "DELETE" } as const;
type Verb = keyof typeof METHODS;

const CORE = "/api/v1";
const IN_DEFAULT = "/namespaces/default";
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const SIDECARSETS = "/apis/apps.kruise.io/v1beta1/sidecarsets";
const OURS = "/namespaces/kruise-system";

/** Collection → verbs that both accounts lack there. */
const FOR_BOTH: Readonly<Record<string, readonly Verb[]>> = {
  [`${CORE}${IN_DEFAULT}/secrets`]: ["get", "list", "create", "patch", "delete"],
  [`${CORE}${OURS}/secrets`]: ["get", "list", "create"],
  [`${CORE}/secrets`]: ["list"],
  [`${CORE}${IN_DEFAULT}/pods`]: ["create", "update", "delete"],
  [`${CORE}${IN_DEFAULT}/configmaps`]: ["get", "list", "create", "patch", "delete"],
  [`${CORE}${OURS}/configmaps`]: ["list"],
  [`${CORE}${IN_DEFAULT}/persistentvolumeclaims`]: ["get", "list", "create", "patch", "delete"],
  [`/apis/apps.kruise.io/v1beta1${IN_DEFAULT}/statefulsets`]: ["get", "patch"],
  [`${CORE}/namespaces`]: ["create", "patch", "delete"],
  [`${CORE}/nodes`]: ["get", "list", "patch"],
  [`${CORE}${IN_DEFAULT}/serviceaccounts`]: ["get", "create"],
  [`${ADMISSION}/mutatingwebhookconfigurations`]: ["create", "patch", "delete"],
  [`${ADMISSION}/validatingwebhookconfigurations`]: ["create", "patch", "delete"],
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ["create", "patch", "delete"],
  [`${RBAC}/clusterroles`]: ["create", "patch"],
  [`${RBAC}/clusterrolebindings`]: ["create", "patch"],
  [SIDECARSETS]: ["create", "update", "patch", "delete"],
  [`/apis/apps/v1${IN_DEFAULT}/deployments`]: ["get", "patch", "delete"],
  [`/apis/apps/v1${IN_DEFAULT}/controllerrevisions`]: ["get", "create", "delete"],
  [`/apis/coordination.k8s.io/v1${IN_DEFAULT}/leases`]: ["get", "create", "patch"],
};

/** Rights that the reconciler has and the webhooks lack. */
const FOR_WEBHOOKS: Readonly<Record<string, readonly Verb[]>> = {
  [`${CORE}${IN_DEFAULT}/pods`]: ["get", "list", "patch"],
  [`/apis/apps.kruise.io/v1beta1${IN_DEFAULT}/statefulsets`]: ["list"],
  [`${CORE}${IN_DEFAULT}/events`]: ["create", "patch"],
  [`${CORE}${OURS}/configmaps`]: ["create", "patch", "delete"],
  [`/apis/apps/v1${OURS}/controllerrevisions`]: ["create", "patch", "delete"],
  [`/apis/coordination.k8s.io/v1${OURS}/leases`]: ["get", "create", "patch"],
};

function probes(table: Readonly<Record<string, readonly Verb[]>>): readonly (readonly [Verb, string])[] {
  return Object.entries(table).flatMap(([path, verbs]) => verbs.map((verb) => [verb, path] as const));
}

describe.each([
  [WEBHOOKS, [...probes(FOR_BOTH), ...probes(FOR_WEBHOOKS)]],
  [RECONCILER, probes(FOR_BOTH)],
])("an API server refuses the account %s what its role does not hold", (account, forbidden) => {
  it.each(forbidden)("the account may not %s %s", async (verb, path) => {
    const isCollection = verb === "create" || verb === "list";
    const answer = await sendRaw(accounts.get(account) as RawTarget, {
      method: METHODS[verb],
      path: isCollection ? path : `${path}/one`,
      ...(verb === "patch" ? { headers: { "content-type": "application/merge-patch+json" } } : {}),
      ...(["create", "update", "patch"].includes(verb) ? { body: {} } : {}),
    });
    expect(answer).toMatchObject({ code: 403, body: { reason: "Forbidden" } });
    addFigure("forbidden requests, answered 403", 1);
  });
});
