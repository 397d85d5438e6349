// Constants of the dashboard's model serving pages.

export const PROJECTS_PER_PAGE = 10;

// The runtime that every project gets.
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
      image: quay.io/modh/odh-openvino-servingruntime-container:v1.19.0-18
      args: ["--port=8001", "--rest_port=8888", "--config_path=/models/model_config_list.json"]
  builtInAdapter:
    serverType: ovms
    runtimeManagementPort: 8888
    memBufferBytes: 134217728
    modelLoadingTimeoutMillis: 90000
`;
