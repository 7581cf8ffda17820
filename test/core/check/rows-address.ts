/** Installations with a fault at the webhooks' address, or with another tool at work. */
import { FORMER_WEBHOOK_CONFIGURATION } from "../../../shared/api/names.ts";
import type { Facts, WebhookConfiguration } from "../../../shared/core/inspect/check/facts.ts";
import { IN_ORDER, type Row, seen, valueIn, withCertificate, withProbe, withWebhook } from "./fixture.ts";

const POD = "mpod.kb.io";

/** The registration of OpenKruise's manager. */
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

/** The registration under its former name. */
const [CURRENT] = valueIn(IN_ORDER.mutating);
const FORMER: WebhookConfiguration = { ...CURRENT, metadata: { name: FORMER_WEBHOOK_CONFIGURATION } };

export const ADDRESSES: readonly Row[] = [
  [
    "WebhookUnreachable",
    "no server listens at the address",
    { ...withProbe({ handshake: { unreachable: "ECONNREFUSED" } }), trial: { why: "forbidden" } },
    /ECONNREFUSED/,
  ],
  [
    "NotReachableFromHere",
    "only the API server can connect to the address",
    withProbe({ handshake: { unreachable: "ETIMEDOUT" } }),
    /the API server is answered/,
  ],
  [
    "NotProbed",
    "the webhook is a Service of the cluster",
    withWebhook(IN_ORDER, POD, { clientConfig: { service: { namespace: "n", name: "s" } } }),
    /Service of the cluster/,
  ],
  [
    "CertificateNotTrusted",
    "another authority signed the certificate",
    withCertificate({}, "DEPTH_ZERO_SELF_SIGNED_CERT"),
    /DEPTH_ZERO_SELF_SIGNED_CERT/,
  ],
  [
    "CertificateNameWrong",
    "the certificate is for another host",
    withCertificate({ names: ["other"] }, "ERR_TLS_CERT_ALTNAME_INVALID"),
    /is for other/,
  ],
  [
    "CertificateNameWrong",
    "the certificate has no names but a common name",
    withCertificate({ names: [] }),
    /no name at all/,
  ],
  [
    "CertificateExpired",
    "the certificate has expired",
    withCertificate({ validTo: "2025-05-31T00:00:00Z" }, "CERT_HAS_EXPIRED"),
    /is not valid now/,
  ],
  [
    "CertificateExpiresSoon",
    "the certificate expires in a week",
    withCertificate({ validTo: "2025-06-08T12:00:00Z" }),
    /expires in 7 days/,
  ],
  ["CaBundleBroken", "the CA bundle is not a certificate", withProbe({ isCaBroken: true }), /no certificate in PEM/],
  [
    "AnyoneIsAnswered",
    "a caller without proof gets the code 200",
    withProbe({ toStranger: { code: 200, ms: 1 } }),
    /proved nothing/,
  ],
  [
    "CallerRefused",
    "a call to the registered path gets the code 401",
    withProbe({ toRegistered: { code: 401, ms: 1 } }),
    /401/,
  ],
  [
    "WebhookFailing",
    "the webhook answers with the code 500",
    withProbe({ toRegistered: { code: 500, ms: 1 } }),
    /answers with 500/,
  ],
  ["WebhookSlow", "the webhook takes 3 seconds", withProbe({ toRegistered: { code: 200, ms: 3_000 } }), /3\.0 s/],
  [
    "OpenKruiseActive",
    "OpenKruise's manager is running",
    { ...IN_ORDER, managers: seen([MANAGER]) },
    /kruise-system\/kruise-controller-manager|manager runs too/,
  ],
  [
    "OpenKruiseWebhooksLeft",
    "OpenKruise's webhooks are registered without its manager",
    alsoMutating(THEIRS),
    /kruise-mutating-webhook-configuration/,
  ],
  [
    "InjectedTwice",
    "OpenKruise's webhook and manager inject too",
    { ...alsoMutating(THEIRS), managers: seen([MANAGER]) },
    /2 webhooks inject/,
  ],
  [
    "FormerNameRegistered",
    "only the former configuration is registered",
    { ...IN_ORDER, mutating: seen([FORMER]) },
    /API servers call it after most others/,
  ],
  [
    "FormerNameRegistered",
    "the former configuration is registered beside the new one",
    alsoMutating(FORMER),
    /injected twice/,
  ],
  ["OtherPodWebhooks", "a service mesh has a webhook for pods", alsoMutating(MESH), /mesh\/mesh\.example\.com/],
];
