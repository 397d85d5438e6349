export const DEFAULT_CONFIG = {
  kind: 'ServingRuntime',
  spec: {
    containers: [
      {
        name: 'ovms',
        image:
          'registry.example.org/serving/runtime@sha256:acdf2fedb9b8d042e729b68c78465941b678abdecabaf04a71af32a472f519a8',
        args: ['--port=8001'],
      },
    ],
  },
};
