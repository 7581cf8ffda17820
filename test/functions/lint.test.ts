/** Tests findings about SidecarSets in files: the rules of the webhook, and fields that its decoder drops. */
import { describe, expect, it } from "vitest";
import { lint } from "../../functions/library/lint.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";

const set = (name: string, spec: object = {}, more: object = {}): KubernetesObject =>
  ({
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      containers: [{ name: `${name}-agent`, image: "agent:1" }],
      ...spec,
    },
    ...more,
  }) as KubernetesObject;
const WHITELIST: KubernetesObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "kruise-configuration" },
  data: { SidecarSet_PatchPodMetadata_WhiteList: '{"rules":[{"allowedAnnotationKeyExprs":["^x$"]}]}' },
} as KubernetesObject;
const PATCHING = { patchPodMetadata: [{ annotations: { x: "1" }, patchPolicy: "Overwrite" }] };
const HOT = {
  name: "hot",
  image: "x:1",
  upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "e:1" },
  lifecycle: { postStart: { exec: { command: ["x"] } } },
};
const said = (...objects: readonly KubernetesObject[]) =>
  lint({ objects }).map(({ index, name, severity, message }) => `${index} ${name} ${severity}: ${message}`);

describe("lint:", () => {
  it("lint reports nothing for valid SidecarSets and for other kinds", () => {
    expect(said(set("a"), set("b"), { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } })).toEqual([]);
  });

  it.each<[string, readonly KubernetesObject[], readonly string[]]>([
    [
      "an error of the webhook's validation",
      [set("a", { selector: {} })],
      ["0 a error: spec.selector: Invalid value: {}: empty selector is not valid for sidecarset"],
    ],
    [
      "a field with a wrong type",
      [set("a", { containers: "no" })],
      ["0 a error: spec.containers must be a list, not a string"],
    ],
    [
      "a conflict for both SidecarSets",
      ["a", "b"].map((name) =>
        set(name, { selector: { matchLabels: { app: "web" } }, containers: [{ name: "x", image: "x:1" }] }),
      ),
      [
        '0 a error: spec.containers: Invalid value: "x": container x already exist in b',
        '1 b error: spec.containers: Invalid value: "x": container x already exist in a',
      ],
    ],
    [
      "a SidecarSet that is given twice",
      [set("a"), set("a")],
      ["1 a error: SidecarSet a is given twice; leave one out"],
    ],
    [
      "the path of a misspelt field",
      [set("a", { updateStratgy: {}, containers: [{ name: "x", image: "x:1", immage: "y", zzzzzz: 1 }] })],
      [
        "0 a warning: SidecarSets have no field spec.containers[0].immage, did you mean image; it has no effect",
        "0 a warning: SidecarSets have no field spec.containers[0].zzzzzz; it has no effect",
        "0 a warning: SidecarSets have no field spec.updateStratgy, did you mean updateStrategy; it has no effect",
      ],
    ],
    [
      "a revision that only a cluster has",
      [set("a", { injectionStrategy: { revision: { customVersion: "v1" } } })],
      [expect.stringMatching(/^0 a warning: .*only a cluster can tell$/)],
    ],
    [
      "a missing whitelist of patchPodMetadata",
      [set("a", PATCHING)],
      [expect.stringMatching(/^0 a warning: .*unless the ConfigMap kruise-configuration/)],
    ],
    ["nothing for an annotation that the whitelist allows", [set("a", PATCHING), WHITELIST], []],
    [
      "an annotation that the whitelist does not allow",
      [set("a", { patchPodMetadata: [{ annotations: { y: "1" }, patchPolicy: "Overwrite" }] }), WHITELIST],
      [expect.stringMatching(/^0 a error: .*annotation\(y\) is not allowed/)],
    ],
    [
      "an invalid value of the annotation halt-on",
      [set("a", {}, { metadata: { name: "a", annotations: { "sidecarset.kruise.io/halt-on": "many" } } })],
      [expect.stringMatching(/^0 a warning: .*halt-on/)],
    ],
    [
      "an update strategy of an unknown type",
      [set("a", { updateStrategy: { type: "Odd", partition: -1 } })],
      [
        '0 a warning: spec.updateStrategy.type: "Odd" is neither RollingUpdate nor NotUpdate: pods are updated as with RollingUpdate, and the other fields of the strategy are not checked',
      ],
    ],
    ["nothing for NotUpdate", [set("a", { updateStrategy: { type: "NotUpdate" } })], []],
    [
      "a field under the wrong parent",
      [set("a", { partition: 1 })],
      [
        "0 a warning: SidecarSets have no field spec.partition, did you mean spec.updateStrategy.partition; it has no effect",
      ],
    ],
    [
      "a volume whose source is misspelt, once",
      [set("a", { volumes: [{ name: "v", hostpath: { path: "/x" } }] })],
      [
        "0 a error: SidecarSets have no field spec.volumes[0].hostpath, did you mean hostPath; without it the volume v would be an emptyDir",
      ],
    ],
    [
      "a namespace, which has no effect",
      [set("a", {}, { metadata: { name: "a", namespace: "n" } })],
      ["0 a warning: metadata.namespace: SidecarSets are of the whole cluster; it has no effect"],
    ],
    [
      "an image that kubelets refuse",
      [set("a", { containers: [{ name: "x", image: "Agent:1:2" }] })],
      [
        '0 a warning: spec.containers[0].image: "Agent:1:2" is no image reference: kubelets refuse it (InvalidImageName)',
      ],
    ],
    [
      "a percentage over 100",
      [set("a", { updateStrategy: { maxUnavailable: "150%" } })],
      ["0 a warning: spec.updateStrategy.maxUnavailable: 150% is more than all pods; it counts as 100%"],
    ],
    [
      "the name of a hot-upgrade slot that another container has",
      [set("a", { containers: [HOT, { name: "hot-2", image: "x:1" }] })],
      [
        expect.stringMatching(
          /^0 a warning: spec.containers\[1\].name: a pod would have two containers hot-2, because/,
        ),
      ],
    ],
    [
      "the names of hot-upgrade slots that are too long",
      [set("a", { containers: [{ ...HOT, name: "h".repeat(62) }] })],
      [expect.stringMatching(/^0 a warning: spec.containers\[0\].name: hot upgrades add -1 and -2/)],
    ],
    [
      "the name of a hot-upgrade slot that another SidecarSet of the same pods has",
      [
        set("a", { selector: { matchLabels: { app: "web" } }, containers: [HOT] }),
        set("b", { selector: { matchLabels: { app: "web" } }, containers: [{ name: "hot-1", image: "x:1" }] }),
        set("c", { containers: [{ name: "hot-1", image: "x:1" }] }),
      ],
      [
        expect.stringMatching(/^0 a warning: spec.containers\[0\].name: a pod of SidecarSet b too would have two/),
        expect.stringMatching(/^1 b warning: spec.containers\[0\].name: a pod of SidecarSet a too would have two/),
      ],
    ],
    [
      "the line that OpenKruise asks for in a startup probe and in an image volume",
      [
        set("a", {
          containers: [
            {
              name: "x",
              image: "x:1",
              startupProbe: { grpc: { port: 90 } },
            },
          ],
          volumes: [{ name: "i", image: { reference: "tool:1" } }],
        }),
      ],
      [
        expect.stringMatching(/^0 a error: spec.containers\[0\].startupProbe.*; add the line successThreshold: 1$/),
        expect.stringMatching(/^0 a error: spec.volumes\[0\].image.*; add the line pullPolicy: IfNotPresent$/),
      ],
    ],
    [
      "nothing for fields that Kubernetes 1.33 to 1.37 added",
      [
        set("a", {
          containers: [
            {
              name: "x",
              image: "x:1",
              lifecycle: { stopSignal: "SIGUSR1" },
              restartPolicy: "OnFailure",
              restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
              env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "e", path: "a", key: "A" } } }],
              volumeMounts: [
                { name: "e", mountPath: "/e", bindMountOptions: ["noexec"] },
                { name: "c", mountPath: "/c" },
              ],
            },
          ],
          volumes: [
            { name: "e", emptyDir: { mode: 448 } },
            {
              name: "c",
              projected: {
                sources: [
                  { podCertificate: { signerName: "a.b/c", keyType: "ED25519", credentialBundlePath: "bundle.pem" } },
                ],
              },
            },
          ],
        }),
      ],
      [],
    ],
    [
      "rules, keys and certificates that Kubernetes 1.36 refuses",
      [
        set("a", {
          containers: [
            {
              name: "x",
              image: "x:1",
              restartPolicyRules: [{ action: "Stop" }],
              env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "e", path: "../a", key: "A=" } } }],
            },
          ],
          volumes: [
            {
              name: "c",
              projected: {
                sources: [{ podCertificate: { signerName: "a.b/c", keyType: "DSA", maxExpirationSeconds: 60 } }],
              },
            },
          ],
        }),
      ],
      [
        expect.stringMatching(/env\[0\].valueFrom.fileKeyRef.key: Invalid value/),
        expect.stringMatching(/env\[0\].valueFrom.fileKeyRef.path: .*must not contain '..'/),
        expect.stringMatching(/restartPolicy: Required value: must specify restartPolicy when restart rules are used/),
        expect.stringMatching(/restartPolicyRules\[0\].action: Unsupported value/),
        expect.stringMatching(/restartPolicyRules\[0\].exitCodes: Required value/),
        expect.stringMatching(/podCertificate.keyType: Unsupported value/),
        expect.stringMatching(/podCertificate.maxExpirationSeconds: Invalid value: 60/),
        expect.stringMatching(/podCertificate: Required value: specify at least one/),
      ],
    ],
  ])("lint reports %s", (_, objects, expected) => {
    const found = said(...objects);
    expect(found).toHaveLength(expected.length);
    expect(found).toEqual(expect.arrayContaining([...expected]));
  });

  it.each([undefined, {}, "x", [1], [null]])("lint refuses %j in place of a list of objects", (objects) => {
    expect(() => lint({ objects } as never)).toThrow(
      /^lint: objects(?:\[0\])? is (?:missing|not an object|not a list of Kubernetes objects|null)/,
    );
  });
});

const VALUE = "metadata.annotations['a.value.sidecarset.kruise.io/b.CONFIG']";

it("lint names fields that kill pods, fields that are refused, and fields that only a cluster can judge", () => {
  const spec = {
    containers: [
      { name: "a", image: "Nginx:1" },
      { name: "b", image: "x:1", upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "e:1" } },
      { name: "b-2", image: "x:1" },
    ],
    updateStrategy: { maxUnavailable: "150%" },
    volumes: [{ name: "files", downwardAPI: { items: [{ path: "a", fieldRef: { fieldPath: VALUE } }] } }],
  };
  const doubts = [
    /"Nginx:1" is no image reference/,
    /two containers b-2/,
    /150% is more than all pods/,
    /spec\.volumes\[0\]: a container may start again with the former file of a value/,
  ];
  const revision = { customVersion: "v1", policy: "Always" };
  for (const more of [{}, { selector: {} }, { injectionStrategy: { revision } }]) {
    const found = said(set("a", { ...spec, ...more }));
    for (const doubt of doubts) expect(found).toContainEqual(expect.stringMatching(doubt));
    expect(found).toHaveLength(doubts.length + Object.keys(more).length);
  }
});

describe("lint for a version of Kubernetes:", () => {
  const NEWER = {
    initContainers: [
      {
        name: "native",
        image: "x:1",
        restartPolicy: "Always",
        resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }],
      },
    ],
    updateStrategy: { type: "NotUpdate" },
    containers: [
      {
        name: "x",
        image: "x:1",
        env: [
          { name: "1A", value: "a" },
          { name: "B", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "K" } } },
        ],
        lifecycle: { preStop: { sleep: { seconds: 0 } }, stopSignal: "SIGUSR1" },
      },
    ],
  };
  const gates = (kubernetesVersion: string, spec: object = NEWER) =>
    lint({ objects: [set("a", spec)], kubernetesVersion }).flatMap(
      ({ message }) => /(\S+): Kubernetes (\S+) drops it, .+ gate (\w+)/.exec(message)?.slice(1).join(" ") ?? [],
    );

  it("lint names the fields that a version of Kubernetes drops or refuses", () => {
    const ALWAYS = "spec.containers[0].lifecycle.stopSignal 1.V ContainerStopSignals";
    const FILE = "spec.containers[0].env[1].valueFrom.fileKeyRef 1.V EnvFiles";
    const at = (version: number, ...found: readonly string[]) => found.map((one) => one.replace("V", `${version}`));
    expect(gates("v1.36.3")).toEqual(at(36, ALWAYS));
    expect(gates("1.34")).toEqual(at(34, FILE, ALWAYS));
    expect(gates("1.28")).toEqual(
      at(
        28,
        "spec.initContainers[0].restartPolicy 1.V SidecarContainers",
        "spec.containers[0].lifecycle.preStop.sleep 1.V PodLifecycleSleepAction",
        "spec.containers[0].env[0].name 1.V RelaxedEnvironmentVariableValidation",
        "spec.containers[0].lifecycle.preStop.sleep 1.V PodLifecycleSleepActionAllowZero",
        "spec.initContainers[0].resizePolicy 1.V InPlacePodVerticalScaling",
        FILE,
        ALWAYS,
      ),
    );
    expect(gates("1.37")).toEqual(at(37, ALWAYS));
    expect(gates("1.38")).toEqual([]);
  });

  it("lint for Kubernetes 1.37 names the fields that 1.37 added and turns off", () => {
    const TOKEN = { serviceAccountToken: { path: "t", user: 7 } };
    const volumes = [
      { name: "e", emptyDir: { mode: 0o755 } },
      { name: "s", secret: { secretName: "s", defaultUser: 7, items: [{ key: "k", path: "p", user: 8 }] } },
      { name: "p", projected: { sources: [TOKEN, { clusterTrustBundle: { name: "b", path: "c" } }] } },
    ];
    const probe = { httpGet: { port: 1, protocol: "HTTP2" } };
    const containers = [
      {
        name: "x",
        image: "x:1",
        volumeMounts: ["e", "s", "p"].map((name) => ({ name, mountPath: `/${name}` })),
        readinessProbe: probe,
        livenessProbe: { grpc: { port: 1, mode: "TLS" } },
      },
    ];
    expect(gates("1.37", { volumes, containers })).toEqual([
      "spec.containers[0].readinessProbe.httpGet.protocol 1.37 H2CContainerProbe",
      "spec.containers[0].livenessProbe.grpc.mode 1.37 GRPCContainerProbeTLS",
      "spec.volumes[0].emptyDir.mode 1.37 EmptyDirVolumeMode",
      "spec.volumes[1].secret.defaultUser 1.37 AtomicWriteVolumeUserFields",
      "spec.volumes[1].secret.items[0].user 1.37 AtomicWriteVolumeUserFields",
      "spec.volumes[2].projected.sources[0].serviceAccountToken.user 1.37 AtomicWriteVolumeUserFields",
    ]);
  });

  it("lint warns of fields that OpenKruise refuses and newer versions of Kubernetes accept", () => {
    expect(said(set("a", NEWER))).toEqual(
      [
        ["spec.containers[0].env[0].name", 32],
        ["spec.containers[0].lifecycle.preStop.sleep", 33],
        ["spec.initContainers[0].resizePolicy", 33],
      ].map(
        ([field, minor]) =>
          `0 a warning: ${field}: API servers before Kubernetes 1.${minor} drop it or refuse pods that have it, and OpenKruise refuses the SidecarSet`,
      ),
    );
  });

  it.each([
    ["a profile of AppArmor", { securityContext: { appArmorProfile: { type: "Unconfined" } } }, ["AppArmorFields"]],
    ["a name that every version refuses", { env: [{ name: "A=B", value: "a" }] }, []],
    [
      "a mount that is not recursively read-only",
      { volumeMounts: [{ name: "v", mountPath: "/v", recursiveReadOnly: "Disabled" }] },
      [],
    ],
  ])("lint for Kubernetes 1.28 and %s", (_, fields, expected) => {
    const found = gates("1.28", { containers: [{ name: "x", image: "x:1", ...fields }] });
    expect(found.map((one) => one.split(" ").at(-1))).toEqual(expected);
  });

  it("lint refuses a text that is not a version", () => {
    expect(() => lint({ objects: [], kubernetesVersion: "34" })).toThrow("is no version of Kubernetes such as 1.34");
  });
});
