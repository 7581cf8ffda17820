#!/usr/bin/env bash
# Puts new tokens of the three service accounts into SSM, for functions that are no IAM roles of the cluster: STAGE [DURATION].
# With TOKEN_STORE=gcloud it adds versions to the secrets STAGE-webhooks-token and so on in Google's Secret Manager, such as
# those of infra/container/cloud-run.yaml with the stage "sidecarset". Needs kubectl with the right to create
# serviceaccounts/token in the namespace, and aws with ssm:PutParameter, or gcloud. Run it every few hours: API servers cut
# what is asked for short without a word, GKE to 48 hours.
set -euo pipefail
stage=${1:?"the stage of the deployment, such as prod"}
duration=${2:-8760h}
namespace=${POD_NAMESPACE:-kruise-system}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
umask 077

for account in webhooks reconciler viewer; do
  # In a file: everybody on this machine may read a command line.
  kubectl create token "sidecarset-$account" -n "$namespace" --duration="$duration" | tr -d '\n' > "$folder/token"
  if [ "${TOKEN_STORE:-ssm}" = gcloud ]; then
    name="$stage-$account-token"
    gcloud secrets versions add "$name" --data-file="$folder/token" > "$folder/answer"
  else
    name="/sidecarset/$stage/$account-token"
    aws ssm put-parameter --type SecureString --tier Advanced --overwrite \
      --name "$name" --value "file://$folder/token" > "$folder/answer"
  fi
  claims=$(cut -d . -f 2 "$folder/token" | tr -- '-_' '+/')
  while [ $((${#claims} % 4)) -ne 0 ]; do claims="$claims="; done
  end=$(base64 -d <<<"$claims" | sed -nE 's/.*"exp":([0-9]+).*/\1/p')
  echo "$name is valid until $(date -u -d "@$end" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -r "$end" +%Y-%m-%dT%H:%M:%SZ)"
done
