/** The texts of the view of credit. */

export const creditTexts = {
  title: "Credit",
  lead: "What there is, how it is refilled, and every entry that changed it. One credit is one US dollar.",
  buy: "Buy credit",
  send: "Send credit",
  balance: "Balance",
  classes: {
    giftable: "Giftable",
    granted: "Granted",
    held: "Held in transfers"
  },
  classesHelp: {
    giftable: "Bought or received. Calls spend it, and it can be sent on.",
    granted: "Given by the operator. Calls spend it; it cannot be sent.",
    held: "Sent, but not accepted yet. Not part of the balance."
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
  allowanceRollovers: { none: "is taken back when it renews", all: "is kept when it renews" },
  allowanceUpTo: (amount: string) => `is kept up to ${amount} when it renews`,
  redeem: "Redeem a voucher",
  redeemCode: "Code",
  redeemHelp: "20 characters. Case, spaces and dashes do not matter.",
  redeemGo: "Redeem",
  redeemed: (amount: string) => `${amount} arrived.`,
  notManager: "Owners and admins of this tenant buy credit and change these settings.",
  statuses: {
    suspended:
      "The billing account is suspended: calls are refused, and nothing is charged. The operator can tell why.",
    closed: "The billing account is closed: calls are refused."
  } as Readonly<Record<string, string>>,
  buyAmount: "Amount",
  buyAmountHelp: "A whole number of dollars, from 5 to 10,000.",
  buyText:
    "You pay on the page of the payment processor and come back here. The credit is booked when the processor confirms the payment, usually within seconds.",
  buyGo: "Continue to payment",
  waiting: (amount: string) => `Payment of ${amount}: waiting for the processor to confirm it.`,
  waitingText: "The balance changes here by itself. If you did not pay, nothing was booked.",
  arrived: (amount: string) => `${amount} arrived.`,
  dismiss: "Dismiss",
  methods: "Payment methods",
  methodsLead: "Stored at the payment processor; this service knows the last digits only.",
  methodsAdd: "Add a method",
  methodsNone: "No method is stored",
  methodsNoneText: "Auto-reload needs one. It is entered on the processor's page; buying credit there stores it too.",
  methodsOff: "This deployment takes no payments",
  methodsOffText: "No payment processor is configured. Credit is granted by the operator, or sent by other people.",
  methodEnds: (month: string) => `ends ${month}`,
  methodUsed: "used by auto-reload",
  reload: "Auto-reload",
  reloadOn: "Turn on",
  reloadAgain: "Turn on again",
  reloadChange: "Change",
  reloadNow: "Charge now",
  reloadCharged: "Charged. The credit is in the balance.",
  reloadAsked: "The processor was asked and has not answered yet.",
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
  reloadOff: "Nothing is charged by itself. When the balance is used up, calls are refused.",
  reloadNext: "What happens next",
  reloadLast: "Last charge",
  reloadNever: "none yet",
  reloadLastError: "Last problem",
  reloadNextIdle: (left: string) => `Nothing, until the balance has fallen by ${left} more.`,
  reloadNextBelow:
    "The balance is below the threshold already, and a charge begins only when it falls across it. Charge now, or buy credit, to get above it.",
  reloadNextFlight:
    "The processor has been asked. As soon as it answers, the credit is booked, or the problem is shown here.",
  reloadNextCooldown: (at: string) => `No further charge before ${at}: ten minutes lie between two of them.`,
  reloadNextFailed: (failures: number, free: string | undefined) =>
    `It is tried again when the balance next falls below the threshold. ${
      failures === 1 ? "One charge has failed" : `${failures} charges in a row have failed`
    }; after three auto-reload pauses itself. You can choose another method, or charge ${
      free === undefined ? "now" : `from ${free} on`
    }.`,
  reloadNextPaused:
    "Nothing is charged: three charges in a row failed. Choose another payment method if the reason needs one, and turn auto-reload on again; it then counts from zero.",
  reloadFree: (at: string) => `A charge can be asked for again ${at}.`,
  reloadEnabled: "Refill the balance by itself",
  threshold: "When the balance falls below",
  thresholdHelp: "From 0.01 to 10,000.",
  amount: "Charge",
  amountHelp: "A whole number of dollars, from 5 to 10,000.",
  method: "With",
  methodChoose: "Choose a method",
  save: "Save",
  saved: "Saved.",
  alerts: "Alerts",
  alertsChange: "Change",
  alertsOn: "Turn on",
  alertsEnabled: "Tell us when the balance is low",
  alertsStates: { on: "On", below: "Below", off: "Off" },
  alertsOff: "No one is notified when the balance runs low.",
  alertsRule: (warn: string) =>
    `When the balance falls below ${warn}, owners and admins are notified, and the billing addresses get an email.`,
  alertsRearm: (rearm: string) => `The next alert comes only after the balance has been above ${rearm}.`,
  alertsBelow: (warn: string, rearm: string) =>
    `The alert was sent when the balance fell below ${warn}. The next one comes after the balance has been above ${rearm}.`,
  alertsUnsent: (warn: string) =>
    `The balance is below ${warn} already. An alert is sent with the next charge that leaves it there.`,
  warn: "Alert below",
  rearm: "Alert again only after it was above",
  rearmHelp: "Empty: the same amount.",
  emails: "Billing addresses",
  emailsHelp: "Up to 10, separated by commas. Emails about the balance and auto-reload go there.",
  emailsNone: "none",
  purchases: "Purchases",
  purchasesNone: "Nothing was bought yet.",
  purchaseKinds: { checkout: "Bought", auto_reload: "Auto-reload", offline: "Paid another way" },
  movementsTitle: "Refunds and disputes",
  movements: {
    refund: (amount: string) => `${amount} refunded`,
    dispute: (amount: string) => `${amount} disputed`
  },
  movementReturned: "(came back)",
  owed: (amount: string) => `${amount} is still to be taken back`,
  ledger: "Entries",
  ledgerLead: "Every change of the balance, newest first",
  ledgerFilter: "Entries of",
  ledgerFilters: {
    all: "All",
    calls: "Calls",
    purchases: "Purchases",
    grants: "Grants",
    transfers: "Transfers"
  },
  ledgerNone: "No entry of this kind",
  ledgerEmpty: "No entry yet",
  ledgerEmptyText: "Purchases, grants, transfers and calls appear here, each with the balance after it.",
  when: "When",
  what: "What",
  entryAmount: "Amount",
  after: "Balance after",
  details: "details",
  reference: "Reference"
} as const
