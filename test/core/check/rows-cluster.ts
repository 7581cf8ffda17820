/** Installations with a fault in the definition, the rights or the passes. */
import type { Facts } from "../../../shared/core/inspect/check/facts.ts";
import { formatLedger } from "../../../shared/core/ledger.ts";
import { IN_ORDER, managed, NOW, type Row, SET, seen, updatedPod, withDefinition } from "./fixture.ts";

const ledgerOf = (name: string, count: number, time = NOW) => ({
  metadata: { namespace: "kruise-system", name: `sidecarset-ledger-${name}`, ...managed(time, "data") },
  data: formatLedger({
    uid: "uid-ss",
    generation: 1,
    reservations: Array.from({ length: count }, (_, index) => ({
      namespace: "default",
      name: `p${index}`,
      uid: `uid-${index}`,
      resourceVersion: "1",
      generation: 1,
      revision: "r",
    })),
  }),
});
const withLedgers = (...configMaps: readonly object[]): Facts => ({ ...IN_ORDER, configMaps: seen(configMaps) });

export const CLUSTER: readonly Row[] = [
  ["DefinitionMissing", "there is no definition", { ...IN_ORDER, definition: seen(undefined) }, /knows no SidecarSets/],
  [
    "VersionNotServed",
    "v1alpha1 is not served",
    withDefinition(({ versions = [] }) => ({
      versions: versions.map((one) => ({ ...one, served: one.name === "v1beta1" })),
    })),
    /v1alpha1 is not served/,
  ],
  [
    "VersionNotStored",
    "v1alpha1 is the stored version",
    withDefinition(({ versions = [] }) => ({
      versions: versions.map((one) => ({ ...one, storage: one.name === "v1alpha1" })),
    })),
    /stored as v1alpha1/,
  ],
  [
    "OldVersionStored",
    "some objects may be stored as v1alpha1",
    withDefinition(() => ({}), { storedVersions: ["v1alpha1", "v1beta1"] }),
    /may be stored as v1alpha1/,
  ],
  [
    "ConversionMissing",
    "the conversion strategy is None",
    withDefinition(() => ({ conversion: { strategy: "None" } })),
    /no conversion webhook/,
  ],
  [
    "ConversionElsewhere",
    "the conversion webhook is OpenKruise's",
    withDefinition(() => ({
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig: { service: { namespace: "kruise-system", name: "kruise-webhook-service" } } },
      },
    })),
    /asked of OpenKruise/,
  ],
  [
    "SchemaOld",
    "the schema lacks fields",
    withDefinition(({ versions = [] }) => ({
      versions: versions.map((one) => ({
        ...one,
        schema: { openAPIV3Schema: { properties: { spec: { properties: {} }, status: {} } } },
      })),
    })),
    /\.spec\./,
  ],
  [
    "ApiServerOld",
    "the API server has the version 1.25",
    { ...IN_ORDER, version: seen({ major: "1", minor: "25", gitVersion: "v1.25.3" }) },
    /older than 1\.28/,
  ],
  ...["30", "38+"].map(
    (minor): Row => [
      "ApiServerUntested",
      `the API server has the version 1.${minor}`,
      { ...IN_ORDER, version: seen({ major: "1", minor, gitVersion: `v1.${minor}.1` }) },
      minor === "30" ? /older than 1\.31, the oldest/ : /newer than 1\.37, the newest/,
    ],
  ),
  [
    "RightMissing",
    "the account may not patch pods",
    { ...IN_ORDER, rights: seen([{ account: "a", what: "patch pods", role: "base", isAllowed: false }]) },
    /may not patch pods/,
  ],
  [
    "RightTooWide",
    "the account may get secrets",
    { ...IN_ORDER, rights: seen([{ account: "a", what: "get secrets", role: "none", isAllowed: true }]) },
    /may get secrets/,
  ],
  [
    "OptionalRoleMissing",
    "a pod has a launch order",
    {
      ...IN_ORDER,
      pods: seen([
        {
          ...updatedPod(),
          metadata: {
            ...updatedPod().metadata,
            annotations: {
              ...updatedPod().metadata?.annotations,
              "apps.kruise.io/container-launch-priority": "Ordered",
            },
          },
        },
      ]),
    },
    /1 pod has a launch order/,
  ],
  [
    "OptionalRoleMissing",
    "no account may serve the existing requests",
    {
      ...IN_ORDER,
      optionalObjects: seen({ "container-recreate": 2 }),
      rights: seen([{ account: "a", what: "patch x", role: "container-recreate", isAllowed: false }]),
    },
    /2 objects are there that it serves.*patch x/,
  ],
  ["TickUnknown", "there is no Lease", { ...IN_ORDER, lastPass: seen(undefined) }, /no pass has run from here yet/],
  [
    "TickNeverRan",
    "there is no Lease and a SidecarSet was not recorded",
    {
      ...IN_ORDER,
      lastPass: seen(undefined),
      sidecarSets: seen([{ ...SET, metadata: { ...SET.metadata, generation: 2 } }]),
    },
    /no pass has recorded 1 SidecarSet:/,
  ],
  [
    "TickNotRunning",
    "the last pass ran two hours ago",
    { ...IN_ORDER, lastPass: seen("2025-05-31T22:00:00Z") },
    /2 hours ago/,
  ],
  [
    "NotificationsWait",
    "nobody has taken a notification for an hour",
    {
      ...IN_ORDER,
      sidecarSets: seen([
        {
          ...SET,
          status: {
            ...SET.status,
            notifications: [{ id: "u.1.0", at: "2025-05-31T23:00:00Z", event: "Blocked", message: "pods fail" }],
          },
        },
      ]),
    },
    /1 notification waits to be sent, the oldest \(Blocked\) since 2025-05-31T23:00:00Z/,
  ],
  ["ClockSkew", "the clocks differ by a minute", { ...IN_ORDER, skewSeconds: seen(60) }, /60 seconds behind/],
  [
    "LedgerUnreadable",
    "the ConfigMap of a ledger has other data",
    withLedgers({ metadata: { namespace: "kruise-system", name: "sidecarset-ledger-ss" }, data: { x: "y" } }),
    /no ledger/,
  ],
  [
    "ReservationsHeld",
    "pods have been reserved for an hour",
    withLedgers(ledgerOf("ss", 2, "2025-05-31T23:00:00Z")),
    /2 pods are reserved/,
  ],
  ["LedgerLeft", "the SidecarSet of a ledger does not exist", withLedgers(ledgerOf("gone", 0)), /is gone/],
  [
    "ChangeNotSeen",
    "the generation is 2 and the recorded one is 1",
    { ...IN_ORDER, sidecarSets: seen([{ ...SET, metadata: { ...SET.metadata, generation: 2 } }]) },
    /generation 2, recorded 1/,
  ],
];
