/** The texts of receipts and their verification. */

export const receiptTexts = {
  title: "Receipt",
  lead: "Proves that the ledger entry is in the service's append-only log. This browser checks the proof.",
  verify: "Verify the receipt",
  again: "Verify again",
  entryTitle: (number: string) => `Receipt of entry ${number}`,
  verifyEntry: (number: string) => `Verify the receipt of entry ${number}`,
  inLog: { charge: "This charge is in the log.", entry: "This entry is in the log." },
  checkpoint: (entries: string, at: string) => `Checkpoint of ${at}, with ${entries} entries.`,
  cosigned: (name: string, at: string) => `Cosigned by ${name} at ${at}.`,
  witnesses:
    "The list of witnesses comes from the service. This browser stored their keys and warns if one changes. Compare them with the keys that the witnesses publish.",
  witnessKeys: "Keys of the witnesses",
  storedSince: (since: string) => `Stored in this browser since ${since}.`,
  unknown: (names: string) => `Also signed by ${names}. This page has no key for this signature and did not check it.`,
  pending: "The log has not reached this entry yet.",
  pendingText: "Entries are added about a second after they are booked. This page tries again every two seconds.",
  none: "There is no receipt",
  free: "The call cost nothing, so the ledger has no entry for it.",
  paidByAnother:
    "Another tenant paid for this call. Only that tenant can get the receipt, because it shows the balance.",
  unsupported: "This browser cannot verify the receipt",
  insecure: "Browsers offer cryptography only over HTTPS. Open the console with HTTPS, or use the command below.",
  noEd25519: "It does not support Ed25519 signatures. Update the browser, or use the command below.",
  invalid: "The receipt is not valid",
  invalidText: "Keep the receipt and ask the operator for an explanation.",
  contradicts: (figure: string) => `the receipt states another ${figure} than this page`,
  figures: {
    account: "account",
    amount: "amount",
    balance: "balance",
    number: "number",
    reference: "reference",
    source: "source",
    type: "direction"
  },
  unavailable: "The receipt could not be loaded",
  changed: "The log's key has changed",
  changedText: (since: string) =>
    `This browser has trusted the earlier key since ${since}. An operator may replace the key, but a forged log would also show another one. Compare the new key with a copy from elsewhere, such as the operator's website, before you trust it.`,
  witnessChanged: "The key of a witness has changed",
  witnessChangedText: (names: string) =>
    `The service names another key for ${names} than this browser has stored. A witness may replace its key, but a service could also invent one. Compare the new key with the one that the witness publishes before you trust it.`,
  trust: "Trust the new key",
  log: "Log",
  entry: "Entry",
  entryOf: (number: string, account: string) => `number ${number} of ${account}`,
  leaf: "Leaf",
  vendor: "Vendor's request",
  request: "SHA-256 of the request",
  answer: "SHA-256 of the answer",
  root: "Root",
  copy: "Copy the receipt",
  keep: "Anyone can check a copy without this service:"
} as const
