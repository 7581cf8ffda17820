#!/usr/bin/env bash
# Packages what would be deployed, without an account, and has cfn-lint and checkov read the template. Both come from PyPI, into .cache/python. Then npm audit. Ends with: N passed, N failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
PATH="$PWD/node_modules/.bin:$PATH" # the Node that npm scripts run on
out=.cache/package
python=.cache/python
template=$out/cloudformation-template-update-stack.json
full=$out-full/cloudformation-template-update-stack.json
balanced=$out-balanced/cloudformation-template-update-stack.json
canary=$out-canary/cloudformation-template-update-stack.json
deployed=$out-deployed/cloudformation-template-update-stack.json
passed=0
failed=0

verdict() { # what, 0 when it holds
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); echo "ok   $1"; else failed=$((failed + 1)); echo "FAIL $1"; fi
}

# No credentials and no profile: what follows can reach no account.
unset AWS_PROFILE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
rm -rf "$out" "$out-full" "$out-balanced" "$out-canary" "$out-deployed"
npm run --silent package -- --package "$out"
verdict "npm run package" $?
# As deploy:all has it deployed: with the parameters that it finds out by itself, and those that docs/deploy.md begins with.
# Digests of a fixed secret: one in some ten made-up ones has 40 letters in a row, which checkov takes for a key of AWS.
digests=$(node --input-type=module -e 'import { digestsOf } from "./infra/aws/deploy/parameters.ts"; console.log(digestsOf(["a".repeat(43)]));')
osls package --package "$out-deployed" --param="eks-cluster=demo" --param="cluster-server=https://0123.gr7.eu-central-1.eks.amazonaws.com" \
  --param="cluster-ca=LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJzekNDQVZtZ0F3SUJBZ0lVRXhhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==" \
  --param="path-digests=$digests" --param="registered-failure-policy=Fail" --param="reserved-concurrency=mutate-pod=200" \
  --param="alarm-topic=arn:aws:sns:eu-central-1:123456789012:pages"
verdict "osls package, with what deploy:all gives it" $?
# With all that is optional, from the same bundles.
osls package --package "$out-full" --param="rollout-workers=10" --param="ordered-sets=true" --param="keep-registration=true" --param="more-alarms=true" --param="canary=true" \
  --param="alarm-topic=arn:aws:sns:eu-central-1:123456789012:pages" --param="ticket-topic=arn:aws:sns:eu-central-1:123456789012:tickets" --param="alarm-above=PodErrors=3" --param="monthly-budget=50" \
  --param="memory=rollout=1769" --param="reserved-concurrency=mutate-pod=200" --param="requests-per-second=500" --param="tags=team=platform" \
  --param="permissions-boundary=arn:aws:iam::123456789012:policy/bounds" \
  --param="function-key=arn:aws:kms:eu-central-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef" \
  --param="domain-name=webhooks.example.com" --param="function-urls=false" \
  --param="domain-certificate=arn:aws:acm:eu-central-1:123456789012:certificate/01234567-89ab-cdef-0123-456789abcdef" \
  --param="truststore=s3://trust/clients.pem" --param="authentication=client-certificate" --param="client-names=kube-apiserver"
verdict "osls package, with all that is optional" $?
osls package --package "$out-canary" --param="canary=true" --param="log-key=arn:aws:kms:eu-central-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef" \
  --param="authentication=bearer-token" --param="bearer-tokens=arn:aws:secretsmanager:eu-central-1:123456789012:secret:tokens"
verdict "osls package, with aliases by Function URL" $?
printf '%s' '{"eu":{"EKS_CLUSTER":"shop"},"on-prem":{"CLUSTER_SERVER":"https://10.0.0.1:6443","CLUSTER_CA":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJzekNDQVZtZ0F3SUJBZ0lVRXhhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==",
"CLUSTER_TOKEN":"arn:aws:ssm:eu-central-1:123456789012:parameter/writing","WEBHOOKS_TOKEN":"arn:aws:ssm:eu-central-1:123456789012:parameter/reading","VIEWER_TOKEN":"arn:aws:ssm:eu-central-1:123456789012:parameter/viewing"}}' >"$out-clusters.json"
osls package --package "$out-balanced" --param="clusters=$out-clusters.json" --param="ordered-sets=true" --param="function-urls=false" --param="domain-name=webhooks.example.com" \
  --param="domain-certificate=arn:aws:acm:eu-central-1:123456789012:certificate/01234567-89ab-cdef-0123-456789abcdef" \
  --param="subnets=subnet-0123456789abcdef0,subnet-0123456789abcdef1" --param="security-groups=sg-0123456789abcdef0" \
  --param="load-balancer-subnets=subnet-0123456789abcdef0,subnet-0123456789abcdef1" --param="load-balancer-security-groups=sg-0123456789abcdef1"
verdict "osls package, of two clusters behind a load balancer inside a VPC" $?
[ -s "$template" ] && [ -s "$full" ] && [ -s "$balanced" ] && [ -s "$canary" ] && [ -s "$deployed" ] || { echo "no template, nothing to look at"; echo "$passed passed, $((failed + 1)) failed"; exit 1; }

[ -x "$python/bin/cfn-lint" ] && [ -x "$python/bin/checkov" ] ||
  { python3 -m venv "$python" && "$python/bin/pip" install --quiet --disable-pip-version-check cfn-lint==1.58.0 checkov==3.3.30; }
verdict "cfn-lint and checkov are there" $?

"$python/bin/cfn-lint" --non-zero-exit-code error --format parseable "$template" "$deployed" "$full" "$balanced" "$canary"
verdict "cfn-lint: no errors" $?

"$python/bin/checkov" --file "$template" "$deployed" "$full" "$balanced" "$canary" --framework cloudformation --skip-download --quiet --output json >"$out/checkov.json"
node infra/aws/checkov-verdict.ts "$out/checkov.json"
verdict "checkov: every failed check has its reason" $?

audit=$(npm audit --omit=dev --audit-level=high 2>&1)
status=$?
if printf '%s' "$audit" | grep -q "audit endpoint returned an error"; then
  echo "--   npm audit: this registry answers no audits, so nothing was looked up"
else
  printf '%s\n' "$audit" | tail -n 3
  verdict "npm audit: nothing high in what is shipped" $status
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
