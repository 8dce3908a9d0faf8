/** The texts of the credit view. */

export const creditTexts = {
  title: "Credit",
  lead: "Your balance, how it is refilled, and its history. One credit is one US dollar.",
  buy: "Buy credit",
  send: "Send credit",
  balance: "Balance",
  classes: {
    giftable: "Giftable",
    granted: "Granted",
    held: "Held in transfers"
  },
  classesHelp: {
    giftable: "Bought or received. It pays for calls and can be sent to others.",
    granted: "Given by the operator. It pays for calls but cannot be sent.",
    held: "Sent but not yet accepted. Not part of the balance."
  },
  allowance: "Allowance",
  allowanceAmount: "Amount",
  allowanceAmounts: {
    week: (amount: string) => `${amount} a week`,
    month: (amount: string) => `${amount} a month`
  },
  allowanceUnused: "Unused",
  allowanceRenews: "Renews",
  allowanceRollover: "Unused credit",
  allowanceRollovers: { none: "taken back when the period ends", all: "kept when the period ends" },
  allowanceUpTo: (amount: string) => `up to ${amount} kept when the period ends`,
  redeem: "Redeem a voucher",
  redeemCode: "Code",
  redeemHelp: "20 characters. Case, spaces and dashes do not matter.",
  redeemGo: "Redeem",
  redeemed: (amount: string) => `${amount} was added to the balance.`,
  notManager: "Only owners and admins of this tenant can buy credit and change these settings.",
  statuses: {
    suspended:
      "The billing account is suspended. Calls are refused, and nothing is charged. Ask the operator for the reason.",
    closed: "The billing account is closed. Calls are refused."
  } as Readonly<Record<string, string>>,
  buyAmount: "Amount",
  buyAmountHelp: "A whole number of dollars, from 5 to 10,000.",
  buyText:
    "You pay on the payment processor's page and return here. Your credit is added when the processor confirms the payment, usually within seconds.",
  buyGo: "Continue to payment",
  waiting: (amount: string) => `Waiting for the processor to confirm the payment of ${amount}.`,
  waitingText: "The balance updates automatically. If you did not pay, it does not change.",
  arrived: (amount: string) => `${amount} was added to the balance.`,
  dismiss: "Dismiss",
  methods: "Payment methods",
  methodsLead: "The payment processor stores them. This service knows only the last digits.",
  methodsAdd: "Add a payment method",
  methodsNone: "No payment methods",
  methodsNoneText: "Auto-reload needs one. You enter it on the processor's page. Buying credit also stores one.",
  methodsOff: "Payments are not available",
  methodsOffText: "No payment processor is configured. Credit comes from the operator or from other people.",
  methodEnds: (month: string) => `expires ${month}`,
  methodUsed: "used by auto-reload",
  reload: "Auto-reload",
  reloadOn: "Turn on",
  reloadAgain: "Turn on again",
  reloadChange: "Change",
  reloadNow: "Charge now",
  reloadCharged: "Charged. The credit is in your balance.",
  reloadAsked: "The processor has not confirmed the charge yet.",
  reloadStates: {
    idle: "On",
    in_flight: "Charging",
    cooldown: "On",
    failed: "Failed",
    disabled: "Off"
  },
  reloadPaused: "Paused",
  reloadRule: (amount: string, threshold: string, method: string) =>
    `When the balance falls below ${threshold}, ${amount} is charged to ${method}.`,
  reloadOff: "Nothing is charged automatically. Calls are refused when the balance is used up.",
  reloadNext: "What happens next",
  reloadLast: "Last charge",
  reloadNever: "none yet",
  reloadLastError: "Last error",
  reloadNextIdle: (left: string) => `Nothing, until the balance has fallen by ${left} more.`,
  reloadNextBelow:
    "The balance is already below the threshold. A charge starts only when the balance falls below it. Charge now or buy credit first.",
  reloadNextFlight:
    "A charge was requested. When the processor responds, the credit is added or the problem is shown here.",
  reloadNextCooldown: (at: string) => `No further charge before ${at}. Charges are at least ten minutes apart.`,
  reloadNextFailed: (failures: number, free: string | undefined) =>
    `The next attempt happens when the balance falls below the threshold again. ${
      failures === 1 ? "One charge has failed" : `${failures} charges in a row have failed`
    }. After three failures in a row, auto-reload pauses. You can choose another method, or charge ${
      free === undefined ? "now" : `from ${free} on`
    }.`,
  reloadNextPaused:
    "Auto-reload is paused because three charges in a row failed. Choose another payment method if necessary. Then turn auto-reload on again.",
  reloadFree: (at: string) => `You can request a charge again ${at}.`,
  reloadEnabled: "Refill the balance automatically",
  threshold: "When the balance falls below",
  thresholdHelp: "From 0.01 to 10,000.",
  amount: "Charge",
  amountHelp: "A whole number of dollars, from 5 to 10,000.",
  method: "Payment method",
  methodChoose: "Choose a payment method",
  save: "Save",
  saved: "Saved.",
  alerts: "Alerts",
  alertsChange: "Change",
  alertsOn: "Turn on",
  alertsEnabled: "Send alerts when the balance is low",
  alertsStates: { on: "On", below: "Low balance", off: "Off" },
  alertsOff: "Low-balance alerts are off.",
  alertsRule: (warn: string) =>
    `When the balance falls below ${warn}, owners and admins are notified, and the billing addresses get an email.`,
  alertsRearm: (rearm: string) => `The next alert is sent only after the balance has been above ${rearm}.`,
  alertsBelow: (warn: string, rearm: string) =>
    `The alert was sent when the balance fell below ${warn}. The next one is sent after the balance has been above ${rearm}.`,
  alertsUnsent: (warn: string) =>
    `The balance is already below ${warn}. If it is still below after the next charge, an alert is sent.`,
  warn: "Alert below",
  rearm: "Alert again once the balance has been above",
  rearmHelp: "Leave empty for the same amount.",
  emails: "Billing addresses",
  emailsHelp: "Up to 10, separated by commas. They receive emails about the balance and auto-reload.",
  emailsNone: "none",
  purchases: "Purchases",
  purchasesNone: "No purchases yet.",
  purchaseKinds: { checkout: "Bought", auto_reload: "Auto-reload", offline: "Paid outside this service" },
  movementsTitle: "Refunds and disputes",
  movements: {
    refund: (amount: string) => `${amount} refunded`,
    dispute: (amount: string) => `${amount} disputed`
  },
  movementReturned: "(returned)",
  owed: (amount: string) => `${amount} is still owed`,
  ledger: "Entries",
  ledgerLead: "Every change to the balance, newest first",
  ledgerFilter: "Filter entries",
  ledgerFilters: {
    all: "All",
    calls: "Calls",
    purchases: "Purchases",
    grants: "Grants",
    transfers: "Transfers"
  },
  ledgerNone: "No entries of this kind",
  ledgerEmpty: "No entries yet",
  ledgerEmptyText: "Purchases, grants, transfers and calls appear here, each with the balance after it.",
  when: "Time",
  what: "Description",
  entryAmount: "Amount",
  after: "Balance after",
  details: "details",
  reference: "Reference"
} as const
