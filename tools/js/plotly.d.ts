// The report loads plotly at run time, so its scripts find it among the page's globals.
declare const Plotly: any;
