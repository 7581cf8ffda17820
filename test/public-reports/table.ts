/**
 * Lists public bug reports of this and of other systems that were tried here. Only facts: the input, the first result,
 * and the expected result now. The tests beside this table try each report.
 */
export interface PublicReport {
  readonly source: string;
  readonly tried: string;
  /** the result of the first try, on 29 November 2026 */
  readonly first: "right" | "wrong";
  /** the result that the test expects */
  readonly now: string;
}

const github = (repository: string, number: number) => `https://github.com/${repository}/issues/${number}`;

export const REPORTS = {
  "pods of a List are told apart": {
    source: github("linkerd/linkerd2", 1676),
    tried: "preview of a List with a workload that matches, one that does not, and one that is refused",
    first: "wrong",
    now: "each sentence on stderr names the workload that it is about",
  },
  "a file without pods": {
    source: github("linkerd/linkerd2", 1603),
    tried: "preview of a file that holds a Service only",
    first: "wrong",
    now: "exit code 2 and a sentence; without a SidecarSet in the file it asked for a kubeconfig first",
  },
  "a CronJob": {
    source: github("linkerd/linkerd2", 3630),
    tried: "preview of a CronJob, as kubectl get prints it",
    first: "right",
    now: "the pod of its job template has the sidecar",
  },
  "a List": {
    source: github("istio/istio", 1733),
    tried: "preview of a List with a Service and a Deployment",
    first: "right",
    now: "the Deployment's pod is injected, and the Service is named on stderr",
  },
  "a pod that is injected already": {
    source: github("linkerd/linkerd2", 1970),
    tried: "preview of what preview printed",
    first: "right",
    now: "the same pod, with one sidecar",
  },
  "comments, empty documents and Windows line ends": {
    source: github("istio/istio", 8924),
    tried: "preview of a file that begins with comments and has empty documents, with a BOM and CRLF",
    first: "right",
    now: "the pod is injected",
  },
  "texts with tabs and several lines": {
    source: github("cdk8s-team/cdk8s", 494),
    tried: "preview of arguments with regular expressions, tabs and several lines",
    first: "wrong",
    now: "the printed YAML reads back as the same texts; a tab was printed as six other characters",
  },
  "texts that look like booleans": {
    source: github("cdk8s-team/cdk8s-core", 1230),
    tried: "preview of environment variables whose values are yes, no, on, off, y and n",
    first: "right",
    now: "the printed YAML quotes them",
  },
  "texts that look like dates": {
    source: github("cdk8s-team/cdk8s", 325),
    tried: "preview of the values 2020-01-01, 12:30:45 and 1e3",
    first: "right",
    now: "the printed YAML reads back as the same texts",
  },
  "a mode in octal": {
    source: github("cdk8s-team/cdk8s", 348),
    tried: "preview of a projected volume with defaultMode 0644 and mode 0o600",
    first: "right",
    now: "420 and 384",
  },
  "a label that became a float": {
    source: github("helm/helm", 13254),
    tried: "lint of the label 3.56136738e+08",
    first: "right",
    now: "an error with line and column that says a string is needed",
  },
  "a key that is given twice": {
    source: github("helm/helm", 4107),
    tried: "preview of a pod with two maps of labels",
    first: "wrong",
    now: "a warning with line and column; the last one counts, as for kubectl",
  },
  "a template that nobody rendered": {
    source: github("Checkmarx/kics", 7161),
    tried: "preview of a chart's template as it is in the chart",
    first: "wrong",
    now: "the sentence says that helm template renders it",
  },
  "an API version that is gone": {
    source: "https://github.com/istio/istio/pull/49328",
    tried: "preview of a SidecarSet of apps.kruise.io/v1",
    first: "wrong",
    now: "the sentence names the versions that exist; it asked for a kubeconfig",
  },
  "a native sidecar": {
    source: github("istio/istio", 52245),
    tried: "lint of an init container with probes, with and without restartPolicy, and with the feature gate for it",
    first: "wrong",
    now: "what the API server forbids is named, what to write instead, and with the gate nothing is wrong",
  },
  "fields of the future": {
    source: github("aws/aws-app-mesh-controller-for-k8s", 774),
    tried: "the patch for a pod with restartPolicy on an init container and with fields of the future",
    first: "right",
    now: "the patch only adds",
  },
  "a sidecar that starts first": {
    source: github("istio/istio", 33911),
    tried: "preview of a sidecar with podInjectPolicy BeforeAppContainer and a postStart hook",
    first: "right",
    now: "it is the first container",
  },
  "two mounts at one path": {
    source: github("istio/istio", 3548),
    tried: "preview of a sidecar that mounts two volumes at one path",
    first: "right",
    now: "refused, with line and column of the second mount",
  },
  "a volume name that no pod may have": {
    source: github("istio/istio", 41627),
    tried: "lint of a volume named with an underscore",
    first: "right",
    now: "an error at the volume, and one at its mount",
  },
  "a pod that has none of the lists": {
    source: github("kyverno/kyverno", 859),
    tried: "the patch for a pod without a name, annotations, init containers, volumes and pull secrets",
    first: "right",
    now: "the patch adds the whole lists, and the API server would take it",
  },
  "a second look behind another webhook": {
    source: github("kyverno/kyverno", 816),
    tried: "a second admission of the injected pod, behind another webhook that added a container",
    first: "right",
    now: "nothing is added twice, and the other container stays",
  },
  "two sets that add to one pod": {
    source: github("kyverno/policies", 1242),
    tried: "preview of two SidecarSets that add annotations and containers to the same pod",
    first: "right",
    now: "the pod has what both add",
  },
  "injection that is paused": {
    source: github("istio/istio", 7404),
    tried: "preview of a pod whose SidecarSet has injectionStrategy.paused",
    first: "wrong",
    now: "the sentence says that injection is paused; it said that no SidecarSet is meant for the pod",
  },
  "quantities that are equal": {
    source: github("argoproj/argo-cd", 21135),
    tried: "the hash of limits written as 1000m and 1000M, and as 1 and 1G",
    first: "right",
    now: "one hash, so diff shows nothing",
  },
  "a quantity without quotes": {
    source: github("actions/actions-runner-controller", 2874),
    tried: "preview of cpu: 1 and cpu: 0.5 without quotes",
    first: "right",
    now: "the printed pod has texts, as the API server stores them",
  },
  "volumes that init containers share": {
    source: github("openkruise/kruise", 1216),
    tried: "preview of an init container with shareVolumePolicy enabled",
    first: "right",
    now: "it has the mounts of the app",
  },
  "a volume of the downward API": {
    source: github("openkruise/kruise", 597),
    tried: "lint of fieldRef without apiVersion",
    first: "right",
    now: "nothing is wrong",
  },
  "a volume that both have": {
    source: github("openkruise/kruise", 254),
    tried: "preview of a pod and a SidecarSet with a volume of the same name",
    first: "right",
    now: "one volume, the pod's own",
  },
  "a small share of few pods": {
    source: github("openkruise/kruise", 1812),
    tried: "plan of a rollout over 6 pods with maxUnavailable 5%",
    first: "right",
    now: "one pod at a time until all are updated",
  },
  "a pod that is deleted while it is updated": {
    source: github("openkruise/kruise", 2253),
    tried: "a pass over four pods of which one was written to and is gone",
    first: "right",
    now: "the next pass goes on with the others",
  },
  "a partition as large as the number of pods": {
    source: github("openkruise/kruise", 1307),
    tried: "plan of a rollout over 3 pods with partition 3",
    first: "right",
    now: "no pod is updated, and the reason is the partition",
  },
  "more than an image changes": {
    source: github("openkruise/kruise", 1272),
    tried: "diff of a change of image and limits",
    first: "right",
    now: "the pods must be recreated, because of resources",
  },
  "lists that are null": {
    source: github("istio/istio", 36899),
    tried:
      "preview of a Deployment as kubectl get prints it, with annotations of several lines and lists that are null",
    first: "wrong",
    now: "the pod is injected; preview ended with a TypeError",
  },
  "a workload without a template": {
    source: "https://github.com/istio/istio/pull/15840",
    tried: "preview of a ReplicationController that has replicas only",
    first: "right",
    now: "exit code 2 and a sentence",
  },
  "anchors with one name": {
    source: github("ansible-collections/kubernetes.core", 189),
    tried: "preview of a SidecarSet in which an anchor is defined twice, and used after both",
    first: "right",
    now: "the second one counts, as for kubectl",
  },
  "a port of the host that two containers want": {
    source: "https://github.com/tumblr/k8s-sidecar-injector/pull/48",
    tried: "preview of a pod with hostNetwork whose port the sidecar has too",
    first: "wrong",
    now: "the API server would refuse the pod, and preview says so",
  },
  "an init container with a volume of the SidecarSet": {
    source: github("openkruise/kruise", 1330),
    tried: "preview of an init container that mounts a volume of the SidecarSet",
    first: "right",
    now: "the pod has the volume",
  },
} as const satisfies Readonly<Record<string, PublicReport>>;
