/** `tollgate/receipts`: verifies receipts and proofs of liabilities without dependencies, in Node, browsers and Deno. */
export * from "../../money/receipts/LiabilityVerifier.ts"
export * from "../../money/receipts/Verifier.ts"
