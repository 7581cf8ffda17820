import { describeContract } from "../contract/contract.ts";
import { SUBJECTS } from "../contract/subjects.ts";
import { contractTarget } from "./support/contract-target.ts";

describeContract("kube-apiserver", async () => contractTarget(), SUBJECTS);
