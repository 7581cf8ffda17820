/** The protobuf fields of what kubectl create sends: field number → name and type, from the generated.proto of k8s.io/api. */

/** A message by its name here; "text[]" repeats, "text{}" is a map from text. */
type FieldType = string;

export type Messages = Readonly<Record<string, Readonly<Record<number, readonly [string, FieldType]>>>>;

export const MESSAGES: Messages = {
  Unknown: { 1: ["typeMeta", "TypeMeta"], 2: ["raw", "bytes"] },
  TypeMeta: { 1: ["apiVersion", "text"], 2: ["kind", "text"] },
  ObjectMeta: {
    1: ["name", "text"],
    2: ["generateName", "text"],
    3: ["namespace", "text"],
    11: ["labels", "text{}"],
    12: ["annotations", "text{}"],
    14: ["finalizers", "text[]"],
  },
  Namespace: { 1: ["metadata", "ObjectMeta"] },
  ConfigMap: {
    1: ["metadata", "ObjectMeta"],
    2: ["data", "text{}"],
    3: ["binaryData", "base64{}"],
    4: ["immutable", "boolean"],
  },
  Secret: { 1: ["metadata", "ObjectMeta"], 2: ["data", "base64{}"], 3: ["type", "text"], 4: ["stringData", "text{}"] },
  ServiceAccount: { 1: ["metadata", "ObjectMeta"] },
  Deployment: { 1: ["metadata", "ObjectMeta"], 2: ["spec", "DeploymentSpec"] },
  DeploymentSpec: { 1: ["replicas", "integer"], 2: ["selector", "LabelSelector"], 3: ["template", "PodTemplateSpec"] },
  LabelSelector: { 1: ["matchLabels", "text{}"] },
  PodTemplateSpec: { 1: ["metadata", "ObjectMeta"], 2: ["spec", "PodSpec"] },
  PodSpec: { 2: ["containers", "Container[]"], 3: ["restartPolicy", "text"] },
  Container: {
    1: ["name", "text"],
    2: ["image", "text"],
    3: ["command", "text[]"],
    4: ["args", "text[]"],
    6: ["ports", "ContainerPort[]"],
    7: ["env", "EnvVar[]"],
  },
  ContainerPort: { 1: ["name", "text"], 3: ["containerPort", "integer"], 4: ["protocol", "text"] },
  EnvVar: { 1: ["name", "text"], 2: ["value", "text"] },
};
