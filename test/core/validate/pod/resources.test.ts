import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "cpu, memory, storage and huge pages",
    {
      resources: {
        limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi" },
        requests: { cpu: "1", memory: "1Gi", "ephemeral-storage": "0" },
      },
    },
    [],
  ],
  ["a device", { resources: { limits: { "nvidia.com/gpu": "2" }, requests: { "nvidia.com/gpu": "2" } } }, []],
  ["something of Kubernetes' own", { resources: { limits: { "kubernetes.io/x": "1500m" } } }, []],
  [
    "less than nothing",
    { resources: { limits: { cpu: "-1" }, requests: { cpu: "-1" } } },
    [
      'container.resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      'container.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
  ],
  [
    "something that nobody knows",
    { resources: { limits: { gpu: "1" } } },
    [
      'container.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
      'container.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
    ],
  ],
  [
    "something that is for namespaces only",
    { resources: { limits: { pods: "1", "requests.cpu": "1", storage: "1", "services.nodeports": "1500m" } } },
    [
      'container.resources.limits[pods]: Invalid value: "pods": must be a standard resource for containers',
      'container.resources.limits[requests.cpu]: Invalid value: "requests.cpu": must be a standard resource for containers',
      'container.resources.limits[storage]: Invalid value: "storage": must be a standard resource for containers',
      'container.resources.limits[services.nodeports]: Invalid value: "services.nodeports": must be a standard resource for containers',
      'container.resources.limits[services.nodeports]: Invalid value: "1500m": must be an integer',
    ],
  ],
  [
    "something whose name is none",
    { resources: { limits: { "a b": "1", "A_b/c": "1" } } },
    [
      "container.resources.limits[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'container.resources.limits[a b]: Invalid value: "a b": must be a standard resource for containers',
      "container.resources.limits[A_b/c]: Invalid value: \"A_b/c\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'container.resources.limits[A_b/c]: Invalid value: "A_b/c": doesn\'t follow extended resource name standard',
    ],
  ],
  [
    "a device whose name begins with requests",
    { resources: { limits: { "requests.example.com/gpu": "1" } } },
    [
      'container.resources.limits[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": doesn\'t follow extended resource name standard',
    ],
  ],
  [
    "a device whose name becomes too long",
    {
      resources: {
        limits: {
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/gpu":
            "1",
        },
      },
    },
    [
      'container.resources.limits[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/gpu]: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/gpu": doesn\'t follow extended resource name standard',
    ],
  ],
  [
    "huge pages in requests of quotas",
    { resources: { limits: { cpu: "1", "requests.hugepages-2Mi": "1" } } },
    [
      'container.resources.limits[requests.hugepages-2Mi]: Invalid value: "requests.hugepages-2Mi": must be a standard resource for containers',
    ],
  ],
  [
    "fewer devices than the limit",
    { resources: { limits: { "nvidia.com/gpu": "2" }, requests: { "nvidia.com/gpu": "1" } } },
    ['container.resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
  ],
  [
    "devices without a limit",
    { resources: { requests: { "nvidia.com/gpu": "1" } } },
    ["container.resources.limits: Required value: Limit must be set for non overcommitable resources"],
  ],
  ["cpu without a limit", { resources: { requests: { cpu: "1" } } }, []],
  [
    "huge pages without a limit",
    { resources: { requests: { cpu: "1", "hugepages-2Mi": "2Mi" } } },
    ["container.resources.limits: Required value: Limit must be set for non overcommitable resources"],
  ],
  [
    "more huge pages than the limit",
    { resources: { limits: { memory: "1Gi", "hugepages-2Mi": "2Mi" }, requests: { "hugepages-2Mi": "4Mi" } } },
    ['container.resources.requests: Invalid value: "4Mi": must be equal to hugepages-2Mi limit of 2Mi'],
  ],
  [
    "nothing but huge pages",
    { resources: { limits: { "hugepages-2Mi": "2Mi" } } },
    ["container.resources: Forbidden: HugePages require cpu or memory"],
  ],
  [
    "huge pages and storage",
    { resources: { limits: { "hugepages-2Mi": "2Mi", "ephemeral-storage": "1Gi" } } },
    ["container.resources: Forbidden: HugePages require cpu or memory"],
  ],
  ["a claim without a name", { resources: { claims: [{}] } }, ["container.resources.claims[0]: Required value"]],
  [
    "a claim twice",
    { resources: { claims: [{ name: "c" }, { name: "c" }] } },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Duplicate value: "c"',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "two parts of a claim",
    {
      resources: {
        claims: [
          { name: "c", request: "a" },
          { name: "c", request: "b" },
        ],
      },
    },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "one part of a claim twice",
    {
      resources: {
        claims: [
          { name: "c", request: "a" },
          { name: "c", request: "a" },
        ],
      },
    },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Duplicate value: "c/a"',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "a part of a claim, then all of it",
    { resources: { claims: [{ name: "c", request: "a" }, { name: "c" }] } },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Duplicate value: "c"',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "all of a claim, then a part of it",
    { resources: { claims: [{ name: "c" }, { name: "c", request: "a" }] } },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Duplicate value: "c"',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "a part of a claim and all of one whose name begins alike",
    { resources: { claims: [{ name: "cd", request: "a" }, { name: "c" }] } },
    [
      'container.resources.claims[0]: Not found: "cd": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "a part of a claim by a name that is none",
    { resources: { claims: [{ name: "c", request: "A" }] } },
    [
      "container.resources.claims[0].request: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
];

describe("the resources of a container", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
