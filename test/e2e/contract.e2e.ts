/** The same cases on both clusters: what the embedded one does wrong ends differently here. */
import { describeContract } from "../contract/contract.ts";
import { localTarget } from "../contract/local-target.ts";
import { SUBJECTS } from "../contract/subjects.ts";
import { contractTarget } from "./support/contract-target.ts";

describeContract("kube-apiserver", async () => contractTarget(), SUBJECTS);
describeContract("the embedded cluster", localTarget, SUBJECTS);
