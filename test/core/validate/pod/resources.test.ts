import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "cpu, memory, ephemeral storage and huge pages are accepted",
    {
      resources: {
        limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi" },
        requests: { cpu: "1", memory: "1Gi", "ephemeral-storage": "0" },
      },
    },
    [],
  ],
  [
    "a device in limits and requests is accepted",
    { resources: { limits: { "nvidia.com/gpu": "2" }, requests: { "nvidia.com/gpu": "2" } } },
    [],
  ],
  ["a resource in the domain kubernetes.io is accepted", { resources: { limits: { "kubernetes.io/x": "1500m" } } }, []],
  [
    "a negative amount of cpu is refused",
    { resources: { limits: { cpu: "-1" }, requests: { cpu: "-1" } } },
    [
      'container.resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      'container.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
  ],
  [
    "an unknown resource without a domain is refused",
    { resources: { limits: { gpu: "1" } } },
    [
      'container.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
      'container.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers',
    ],
  ],
  [
    "resources that only a quota may have are refused",
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
    "resources with invalid names are refused",
    { resources: { limits: { "a b": "1", "A_b/c": "1" } } },
    [
      "container.resources.limits[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'container.resources.limits[a b]: Invalid value: "a b": must be a standard resource for containers',
      "container.resources.limits[A_b/c]: Invalid value: \"A_b/c\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'container.resources.limits[A_b/c]: Invalid value: "A_b/c": doesn\'t follow extended resource name standard',
    ],
  ],
  [
    "a device whose name begins with requests is refused",
    { resources: { limits: { "requests.example.com/gpu": "1" } } },
    [
      'container.resources.limits[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": doesn\'t follow extended resource name standard',
    ],
  ],

  [
    "a limit on the quota resource requests.hugepages-2Mi is refused",
    { resources: { limits: { cpu: "1", "requests.hugepages-2Mi": "1" } } },
    [
      'container.resources.limits[requests.hugepages-2Mi]: Invalid value: "requests.hugepages-2Mi": must be a standard resource for containers',
    ],
  ],

  ["a request for cpu without a limit is accepted", { resources: { requests: { cpu: "1" } } }, []],
  [
    "a request for huge pages without a limit is refused",
    { resources: { requests: { cpu: "1", "hugepages-2Mi": "2Mi" } } },
    ["container.resources.limits: Required value: Limit must be set for non overcommitable resources"],
  ],
  [
    "a request for more huge pages than the limit is refused",
    { resources: { limits: { memory: "1Gi", "hugepages-2Mi": "2Mi" }, requests: { "hugepages-2Mi": "4Mi" } } },
    ['container.resources.requests: Invalid value: "4Mi": must be equal to hugepages-2Mi limit of 2Mi'],
  ],
  [
    "a container with only huge pages is refused",
    { resources: { limits: { "hugepages-2Mi": "2Mi" } } },
    ["container.resources: Forbidden: HugePages require cpu or memory"],
  ],
  [
    "a resource claim without a name is refused",
    { resources: { claims: [{}] } },
    ["container.resources.claims[0]: Required value"],
  ],

  [
    "the same request of a resource claim gets an error for a duplicate if it is named twice",
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
    "a whole resource claim that is named after one of its requests gets an error for a duplicate",
    { resources: { claims: [{ name: "c", request: "a" }, { name: "c" }] } },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Duplicate value: "c"',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "a request of a resource claim that is named after the whole claim gets an error for a duplicate",
    { resources: { claims: [{ name: "c" }, { name: "c", request: "a" }] } },
    [
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Duplicate value: "c"',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "two resource claims whose names begin alike get no error for a duplicate",
    { resources: { claims: [{ name: "cd", request: "a" }, { name: "c" }] } },
    [
      'container.resources.claims[0]: Not found: "cd": must be one of the names in pod.spec.resourceClaims which is empty',
      'container.resources.claims[1]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
  [
    "a resource claim with an invalid request name is refused",
    { resources: { claims: [{ name: "c", request: "A" }] } },
    [
      "container.resources.claims[0].request: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      'container.resources.claims[0]: Not found: "c": must be one of the names in pod.spec.resourceClaims which is empty',
    ],
  ],
];

describe("validation of container resources:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
