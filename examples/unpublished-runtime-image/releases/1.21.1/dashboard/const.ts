// Constants of the dashboard's model serving pages.

export const PROJECTS_PER_PAGE = 10;

// Used when the runtime can't be read from ConfigMap servingruntimes-config, key default-config.
export const DEFAULT_RUNTIME = `
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata:
  name: ovms
  labels:
    opendatahub.io/dashboard: "true"
spec:
  supportedModelFormats:
    - {name: openvino_ir, version: opset1, autoSelect: true}
    - {name: onnx, version: "1", autoSelect: true}
  protocolVersions: [grpc-v1]
  multiModel: true
  grpcEndpoint: "port:8085"
  grpcDataEndpoint: "port:8001"
  containers:
    - name: ovms
      image: registry.redhat.io/rhods/odh-openvino-servingruntime-rhel8@sha256:d4b80af7c2ba56ee773871bb6ed6152a2c8da9e89215396b5509f4d191cdbb51
      args: ["--port=8001", "--rest_port=8888", "--config_path=/models/model_config_list.json"]
  builtInAdapter:
    serverType: ovms
    runtimeManagementPort: 8888
    memBufferBytes: 134217728
    modelLoadingTimeoutMillis: 90000
`;
