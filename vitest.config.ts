import { defineConfig } from 'vitest/config'

/** Pure suites share one process per worker; kernel suites run one file at a time, apart from them. */
export default defineConfig({
  test: {
    // No test asks the cluster of whoever runs it.
    env: { KUBECONFIG: '/dev/null' },
    projects: [
      {
        test: {
          name: 'pure',
          include: ['src/**/*.test.ts', 'test/*.test.ts', 'test/stories/**/*.test.ts'],
          pool: 'vmThreads',
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'store',
          include: ['test/store/**/*.test.ts', 'test/broker/**/*.test.ts', 'test/cluster/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'kernel',
          include: ['test/kernel/**/*.test.ts'],
          pool: 'forks',
          fileParallelism: false,
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
