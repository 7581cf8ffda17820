module sidecarset-serverless/test/e2e/node/server

go 1.26.0
