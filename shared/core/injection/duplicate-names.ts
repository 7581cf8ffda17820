/** Finds names that an API server takes once in a pod. */
import type { Pod } from "../../api/kubernetes.ts";

/** One sentence for each name that is given again, as the API server words it: it reads containers first. */
export function duplicateNames({ spec }: Pod): readonly string[] {
  const { initContainers = [], containers = [], volumes = [] } = spec;
  const names = [
    ...containers.map(({ name }, index) => ({ name, field: `spec.containers[${index}].name` })),
    ...initContainers.map(({ name }, index) => ({ name, field: `spec.initContainers[${index}].name` })),
  ];
  const volumeNames = volumes.map(({ name }, index) => ({ name, field: `spec.volumes[${index}].name` }));
  return [...repeated(names), ...repeated(volumeNames)];
}

function repeated(names: readonly { readonly name: string; readonly field: string }[]): readonly string[] {
  const isFirst = ({ name }: { readonly name: string }, index: number) =>
    names.findIndex((one) => one.name === name) === index;
  return names
    .filter((one, index) => !isFirst(one, index))
    .map(({ name, field }) => `${field}: Duplicate value: ${JSON.stringify(name)}`);
}
