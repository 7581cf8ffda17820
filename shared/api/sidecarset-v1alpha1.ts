/** SidecarSet apps.kruise.io/v1alpha1: what differs from the hub. Source: OpenKruise apis/apps/v1alpha1. */
import type { KubernetesObject } from "./kubernetes.ts";
import type { SidecarSetSpec, SidecarSetStatus } from "./sidecarset.ts";

export interface SidecarSetV1alpha1 extends KubernetesObject {
  readonly spec: Omit<SidecarSetSpec, "customVersion"> & { readonly namespace?: string };
  readonly status?: SidecarSetStatus;
}
