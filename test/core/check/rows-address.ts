/** Installations with trouble at the address, or with somebody else at work. */
import { FORMER_WEBHOOK_CONFIGURATION } from "../../../shared/api/names.ts";
import type { Facts, WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { IN_ORDER, type Row, seen, valueIn, withCertificate, withProbe, withWebhook } from "./fixture.ts";

const POD = "mpod.kb.io";

/** What OpenKruise's manager registers. */
const THEIRS: WebhookConfiguration = {
  metadata: { name: "kruise-mutating-webhook-configuration", annotations: { template: "[]" } },
  webhooks: [
    {
      name: POD,
      clientConfig: { service: { namespace: "kruise-system", name: "kruise-webhook-service", path: "/mutate-pod" } },
      rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
    },
  ],
};
const MESH: WebhookConfiguration = {
  metadata: { name: "mesh" },
  webhooks: [
    {
      name: "mesh.example.com",
      rules: [{ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"] }],
    },
  ],
};
const MANAGER = {
  metadata: { namespace: "kruise-system", name: "kruise-controller-manager" },
  spec: { replicas: 2 },
};

const alsoMutating = (more: WebhookConfiguration): Facts => ({
  ...IN_ORDER,
  mutating: seen([...valueIn(IN_ORDER.mutating), more]),
});

/** As it was registered before its name was changed. */
const [CURRENT] = valueIn(IN_ORDER.mutating);
const FORMER: WebhookConfiguration = { ...CURRENT, metadata: { name: FORMER_WEBHOOK_CONFIGURATION } };

export const ADDRESSES: readonly Row[] = [
  [
    "WebhookUnreachable",
    "nobody listens",
    { ...withProbe({ handshake: { unreachable: "ECONNREFUSED" } }), trial: { why: "forbidden" } },
    /ECONNREFUSED/,
  ],
  [
    "NotReachableFromHere",
    "but the API server is answered",
    withProbe({ handshake: { unreachable: "ETIMEDOUT" } }),
    /the API server is answered/,
  ],
  [
    "NotProbed",
    "a Service",
    withWebhook(IN_ORDER, POD, { clientConfig: { service: { namespace: "n", name: "s" } } }),
    /Service of the cluster/,
  ],
  [
    "CertificateNotTrusted",
    "of another authority",
    withCertificate({}, "DEPTH_ZERO_SELF_SIGNED_CERT"),
    /DEPTH_ZERO_SELF_SIGNED_CERT/,
  ],
  [
    "CertificateNameWrong",
    "for another host",
    withCertificate({ names: ["other"] }, "ERR_TLS_CERT_ALTNAME_INVALID"),
    /is for other/,
  ],
  ["CertificateNameWrong", "a common name alone", withCertificate({ names: [] }), /no name at all/],
  [
    "CertificateExpired",
    "in the past",
    withCertificate({ validTo: "2025-05-31T00:00:00Z" }, "CERT_HAS_EXPIRED"),
    /is not valid now/,
  ],
  ["CertificateExpiresSoon", "in a week", withCertificate({ validTo: "2025-06-08T12:00:00Z" }), /expires in 7 days/],
  ["CaBundleBroken", "some text", withProbe({ isCaBroken: true }), /no certificate in PEM/],
  ["AnyoneIsAnswered", "a stranger gets 200", withProbe({ toStranger: { code: 200, ms: 1 } }), /proved nothing/],
  ["CallerRefused", "the registered path gets 401", withProbe({ toRegistered: { code: 401, ms: 1 } }), /401/],
  ["WebhookFailing", "500", withProbe({ toRegistered: { code: 500, ms: 1 } }), /answers with 500/],
  ["WebhookSlow", "3 seconds", withProbe({ toRegistered: { code: 200, ms: 3_000 } }), /3\.0 s/],
  [
    "OpenKruiseActive",
    "its manager runs",
    { ...IN_ORDER, managers: seen([MANAGER]) },
    /kruise-system\/kruise-controller-manager|manager runs too/,
  ],
  ["OpenKruiseWebhooksLeft", "its webhooks without it", alsoMutating(THEIRS), /kruise-mutating-webhook-configuration/],
  ["InjectedTwice", "with it", { ...alsoMutating(THEIRS), managers: seen([MANAGER]) }, /2 webhooks inject/],
  [
    "FormerNameRegistered",
    "it alone",
    { ...IN_ORDER, mutating: seen([FORMER]) },
    /API servers call it after most others/,
  ],
  ["FormerNameRegistered", "beside the new one", alsoMutating(FORMER), /injected twice/],
  ["OtherPodWebhooks", "a mesh", alsoMutating(MESH), /mesh\/mesh\.example\.com/],
];
