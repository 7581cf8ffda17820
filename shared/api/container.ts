/** Fields of a core/v1 Container that validation reads beyond `Container`. Source: Kubernetes API reference v1.32. */
import type { Container, EnvVar, IntOrString, VolumeMount } from "./kubernetes.ts";

export interface ContainerPort {
  readonly name?: string;
  readonly hostPort?: number;
  readonly containerPort?: number;
  readonly protocol?: string;
  readonly hostIP?: string;
}

export interface EnvFromSource {
  readonly prefix?: string;
  readonly configMapRef?: { readonly name?: string };
  readonly secretRef?: { readonly name?: string };
}

export type EnvVarSource = NonNullable<EnvVar["valueFrom"]>;

export interface MountDetails extends VolumeMount {
  readonly recursiveReadOnly?: string;
  readonly mountPropagation?: string;
}

export interface HttpGetAction {
  readonly path?: string;
  readonly port?: IntOrString;
  readonly scheme?: string;
  readonly httpHeaders?: readonly { readonly name?: string }[];
}

/** A probe's or a lifecycle hook's action. */
export interface Handler {
  readonly exec?: { readonly command?: readonly string[] };
  readonly httpGet?: HttpGetAction;
  readonly tcpSocket?: { readonly port?: IntOrString };
  readonly grpc?: { readonly port?: number };
  readonly sleep?: { readonly seconds?: number };
}

export interface Probe extends Handler {
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly terminationGracePeriodSeconds?: number;
}

export interface Lifecycle {
  readonly postStart?: Handler;
  readonly preStop?: Handler;
}

export interface SecurityProfile {
  readonly type?: string;
  readonly localhostProfile?: string;
}

export interface WindowsOptions {
  readonly gmsaCredentialSpecName?: string;
  readonly gmsaCredentialSpec?: string;
  readonly runAsUserName?: string;
  readonly hostProcess?: boolean;
}

export interface SecurityContext {
  readonly capabilities?: { readonly add?: readonly string[] };
  readonly privileged?: boolean;
  readonly windowsOptions?: WindowsOptions;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly allowPrivilegeEscalation?: boolean;
  readonly procMount?: string;
  readonly seccompProfile?: SecurityProfile;
  readonly appArmorProfile?: SecurityProfile;
}

export interface ContainerResizePolicy {
  readonly resourceName?: string;
  readonly restartPolicy?: string;
}

export interface ResourceClaim {
  readonly name?: string;
  readonly request?: string;
}

export interface ContainerDetails extends Omit<Container, "volumeMounts" | "resources"> {
  readonly ports?: readonly ContainerPort[];
  readonly envFrom?: readonly EnvFromSource[];
  readonly volumeMounts?: readonly MountDetails[];
  readonly resources?: Container["resources"] & { readonly claims?: readonly ResourceClaim[] };
  readonly resizePolicy?: readonly ContainerResizePolicy[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: Lifecycle;
  readonly terminationMessagePolicy?: string;
  readonly securityContext?: SecurityContext;
  readonly restartPolicyRules?: readonly ContainerRestartRule[];
}

/** from Kubernetes 1.34 on */
export interface ContainerRestartRule {
  readonly action?: string;
  readonly exitCodes?: { readonly operator?: string; readonly values?: readonly number[] };
}
