/** Asks the API server what our accounts may do: what infra/rbac grants them, and what nothing here needs. */

import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import { mapLimited } from "../../../shared/controller/loop/concurrency.ts";
import type { Right } from "../../../shared/core/inspect/check/facts.ts";
import {
  type AccessObject,
  accessObjects,
  type PolicyRule,
  RECONCILER,
  WEBHOOKS,
} from "../../../shared/install/rbac/access.ts";
import { optionalAccess } from "../../../shared/install/rbac/optional-access.ts";
import type { Cluster, Resource } from "../../../shared/kube/port.ts";

const REVIEWS: Resource = {
  group: "authorization.k8s.io",
  version: "v1",
  plural: "subjectaccessreviews",
  namespaced: false,
};
const AT_ONCE = 8;

interface Question extends Omit<Right, "isAllowed"> {
  readonly attributes: Attributes;
}

/** authorization.k8s.io/v1 ResourceAttributes. */
interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
}

/** @throws KubeError where the caller may not ask */
export function askRights(cluster: Cluster): Promise<readonly Right[]> {
  return mapLimited(questions(), AT_ONCE, async ({ attributes, ...question }) => ({
    ...question,
    isAllowed: await isAllowed(cluster, question.account, attributes),
  }));
}

interface Review extends KubernetesObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

async function isAllowed(cluster: Cluster, account: string, resourceAttributes: Attributes): Promise<boolean> {
  const { status } = await cluster.create<Review>(REVIEWS, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec: {
      user: `system:serviceaccount:${KRUISE_NAMESPACE}:${account}`,
      groups: [
        "system:authenticated",
        "system:serviceaccounts",
        `system:serviceaccounts:${KRUISE_NAMESPACE}`,
        // What an identity from outside the cluster is mapped to.
        account === RECONCILER ? "sidecarset:reconciler" : "sidecarset:webhooks",
      ],
      resourceAttributes,
    },
  });
  return status?.allowed === true;
}

function questions(): readonly Question[] {
  const optional = optionalAccess().flatMap(({ feature, objects }) =>
    objects.flatMap((one) => questionsOf(accountOf(one), one, feature)),
  );
  return [...accessObjects().flatMap((one) => questionsOf(accountOf(one), one, "base")), ...optional, ...excess()];
}

function accountOf({ metadata }: KubernetesObject): string {
  return metadata?.name?.startsWith(RECONCILER) ? RECONCILER : WEBHOOKS;
}

function questionsOf(account: string, { metadata, rules = [] }: AccessObject, role: string): readonly Question[] {
  return rules.flatMap((rule) => attributesOf(rule, metadata?.namespace)).map((one) => question(account, one, role));
}

function attributesOf(
  { apiGroups, resources, verbs, resourceNames }: PolicyRule,
  namespace: string | undefined,
): readonly Attributes[] {
  const names = resourceNames ?? [undefined];
  const place = namespace === undefined ? {} : { namespace };
  return apiGroups.flatMap((group) =>
    resources.flatMap((full) => {
      const [resource = "", subresource] = full.split("/");
      const what = { group, resource, ...(subresource === undefined ? {} : { subresource }), ...place };
      return verbs.flatMap((verb) => names.map((name) => ({ ...what, verb, ...(name === undefined ? {} : { name }) })));
    }),
  );
}

function question(account: string, attributes: Attributes, role: string): Question {
  const { verb, resource, subresource, name, namespace } = attributes;
  const object = [resource, subresource].filter(Boolean).join("/") + (name === undefined ? "" : ` ${name}`);
  return { account, role, attributes, what: `${verb} ${object}${namespace === undefined ? "" : ` in ${namespace}`}` };
}

/** What no role of ours grants, whatever features are in use. */
function excess(): readonly Question[] {
  const nobody: readonly Attributes[] = [
    { verb: "get", group: "", resource: "secrets" },
    { verb: "create", group: "", resource: "pods", subresource: "exec" },
    { verb: "delete", group: "", resource: "namespaces" },
    { verb: "delete", group: "apps.kruise.io", resource: "sidecarsets" },
    { verb: "create", group: "rbac.authorization.k8s.io", resource: "clusterrolebindings" },
    { verb: "impersonate", group: "", resource: "users" },
  ];
  const readersOnly: readonly Attributes[] = [
    { verb: "patch", group: "", resource: "pods" },
    { verb: "create", group: "", resource: "pods" },
    { verb: "patch", group: "apps.kruise.io", resource: "sidecarsets" },
    { verb: "create", group: "apps", resource: "controllerrevisions" },
  ];
  return [
    ...[RECONCILER, WEBHOOKS].flatMap((account) => nobody.map((one) => question(account, one, "none"))),
    ...readersOnly.map((one) => question(WEBHOOKS, one, "none")),
  ];
}
